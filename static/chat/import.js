// The import page with a script: the upload and the import show how far they came. Without one, the form still works.

const POLL_MILLISECONDS = 1000;
const MOST_SILENT_POLLS = 30;

const upload = document.getElementById("upload");
if (upload) watchUpload(upload);
const job = document.getElementById("open-job");
if (job) watchJob(job);

function watchUpload(form) {
  const input = form.elements.file;
  const drop = document.getElementById("drop");
  const chosen = document.getElementById("chosen");
  const button = form.querySelector("button[type=submit]");
  const problem = document.getElementById("upload-problem");
  const progress = document.getElementById("upload-progress");

  const showProblem = (words) => {
    problem.textContent = words;
    problem.hidden = !words;
  };

  const tooLarge = () => input.files[0]?.size > Number(form.dataset.limit);

  const showChosen = () => {
    chosen.textContent = input.files[0]?.name ?? chosen.dataset.empty;
    showProblem(tooLarge() ? form.dataset.tooLarge : "");
  };
  input.addEventListener("change", showChosen);
  showChosen(); // chosen before this script ran, or kept by the browser
  for (const [kind, over] of [
    ["dragenter", true],
    ["dragover", true],
    ["dragleave", false],
    ["drop", false],
  ]) {
    drop.addEventListener(kind, () => drop.classList.toggle("over", over));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (tooLarge()) {
      showProblem(form.dataset.tooLarge);
      return;
    }
    send();
  });

  // fetch() says nothing of how much was sent.
  function send() {
    const request = new XMLHttpRequest();
    const working = (is) => {
      button.disabled = is;
      progress.hidden = !is;
    };
    request.open("POST", form.action);
    request.setRequestHeader("Accept", "application/json");
    request.responseType = "json";
    request.upload.addEventListener("progress", (event) => {
      if (!event.lengthComputable) return;
      const percent = Math.floor((100 * event.loaded) / event.total);
      progress.querySelector("progress").value = percent;
      const words = progress.querySelector("[data-words]");
      words.textContent = words.dataset.words.replace("{percent}", String(percent));
    });
    request.addEventListener("load", () => {
      if (request.response?.location) {
        location.assign(request.response.location);
        return;
      }
      working(false);
      showProblem(request.response?.reason ?? form.dataset.failed);
    });
    for (const end of ["error", "abort", "timeout"]) {
      request.addEventListener(end, () => {
        working(false);
        showProblem(form.dataset.failed);
      });
    }
    showProblem("");
    working(true);
    request.send(new FormData(form));
  }
}

function watchJob(card) {
  const part = (name) => card.querySelector(`[data-part="${name}"]`);
  let silent = 0;

  async function look() {
    try {
      const answer = await fetch(card.dataset.address, { headers: { Accept: "application/json" } });
      if (!answer.ok || answer.redirected) {
        location.reload(); // signed out, or the import is gone: the server says which
        return;
      }
      silent = 0;
      if (draw(await answer.json())) return;
    } catch {
      silent += 1; // the server may come back
    }
    setTimeout(look, POLL_MILLISECONDS * Math.min(1 + silent, MOST_SILENT_POLLS));
  }

  /** True when the import has ended: the page itself tells the rest. */
  function draw({ open, percent, sentence, figures }) {
    if (!open) {
      location.reload();
      return true;
    }
    const said = part("sentence");
    if (said.textContent !== sentence) said.textContent = sentence;
    const progress = part("progress");
    if (percent === null) progress.removeAttribute("value");
    else progress.value = percent;
    part("percent").textContent = percent === null ? "" : `${percent}%`;
    part("figures").replaceChildren(...figures.map(figure));
    return false;
  }

  function figure({ name, count }) {
    const box = document.createElement("div");
    box.append(Object.assign(document.createElement("dt"), { textContent: name }));
    const number = new Intl.NumberFormat(document.documentElement.lang).format(count);
    box.append(Object.assign(document.createElement("dd"), { textContent: number }));
    return box;
  }

  setTimeout(look, POLL_MILLISECONDS);
}
