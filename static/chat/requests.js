// The few things that go over HTTP: what is not an action on a socket, and words too long for a frame.

const cookie = (name) =>
  document.cookie
    .split("; ")
    .find((part) => part.startsWith(`${name}=`))
    ?.slice(name.length + 1);

export class Refused extends Error {
  constructor(status, code, reason) {
    super(reason ?? code);
    this.status = status;
    this.code = code;
    this.reason = reason;
  }
}

/** JSON in, JSON out; throws Refused for an answer that is an error, TypeError when there is no answer. */
export async function request(address, { method = "GET", body } = {}) {
  const answer = await fetch(address, {
    method,
    credentials: "same-origin",
    headers: {
      Accept: "application/json",
      ...(body === undefined ? {} : { "Content-Type": "application/json" }),
      ...(method === "GET" ? {} : { "X-CSRFToken": cookie("csrftoken") ?? "" }),
    },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
  const text = await answer.text();
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = null;
  }
  if (!answer.ok) throw new Refused(answer.status, value?.code ?? "failed", value?.reason);
  return value;
}
