// What the server put into the page as data: settings, and every sentence in the reader's language.

const read = (id) => JSON.parse(document.getElementById(id).textContent);

export const page = read("page");

// What the tab keeps (drafts, quotes that wait) is one person's: whoever signs in next finds none of it.
if (sessionStorage.getItem("person") !== page.person) {
  sessionStorage.clear();
  sessionStorage.setItem("person", page.person);
}
const words = read("words");

/** The sentence `name`, with `{value}` filled in. */
export function say(name, values = {}) {
  const sentence = words[name] ?? name;
  return sentence.replace(/\{(\w+)\}/g, (whole, key) => (key in values ? String(values[key]) : whole));
}

// The browser knows how its reader writes dates; the page knows the language.
const locale = navigator.languages.find((tag) => tag.split("-")[0] === page.language.split("-")[0]) ?? page.language;
const formats = new Map();

function format(options) {
  const key = JSON.stringify(options);
  if (!formats.has(key)) {
    formats.set(key, new Intl.DateTimeFormat(locale, { timeZone: page.timeZone, ...options }));
  }
  return formats.get(key);
}

export const number = (value) => new Intl.NumberFormat(locale).format(value);
export const percent = (share) =>
  new Intl.NumberFormat(locale, { style: "percent", maximumFractionDigits: 0 }).format(share);

/** Dollars, with as many digits as a small sum needs to be more than nothing. */
export function money(value) {
  const sum = Number(value);
  const digits = sum === 0 || sum >= 1 ? 2 : Math.min(Math.max(2, 1 - Math.floor(Math.log10(sum))), 6);
  return new Intl.NumberFormat(locale, { style: "currency", currency: "USD", maximumFractionDigits: digits }).format(
    sum,
  );
}

export const timeOfDay = (date) => format({ hour: "2-digit", minute: "2-digit" }).format(date);
export const wholeTime = (date) => format({ dateStyle: "full", timeStyle: "short" }).format(date);

/** Year, month and day in the reader's time zone: equal for two moments of one day. */
export const dayKey = (date) => format({ year: "numeric", month: "2-digit", day: "2-digit" }).format(date);

/** Whole days between the date's day and today's, in the reader's time zone. */
export function daysAgo(date) {
  const parts = (moment) => {
    const found = new Intl.DateTimeFormat("en-CA", { timeZone: page.timeZone }).format(moment);
    return Date.parse(`${found}T00:00:00Z`);
  };
  return Math.round((parts(new Date()) - parts(date)) / 86400000);
}

export function dayName(date) {
  const ago = daysAgo(date);
  if (ago === 0) return say("today");
  if (ago === 1) return say("yesterday");
  const thisYear = ago < 300;
  return format({ weekday: "long", day: "numeric", month: "long", ...(thisYear ? {} : { year: "numeric" }) }).format(
    date,
  );
}
