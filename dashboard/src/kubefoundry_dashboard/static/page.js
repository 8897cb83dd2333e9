// Keeps the page up to date, and checks a form while it is filled in. HTML comes from our own server only, which has
// escaped it. Everything else is inserted as text. Without this script, every page works but has to be reloaded.
"use strict";
(() => {
  const $ = (selector, from = document) => from.querySelector(selector);
  const csrf = () => $("meta[name=csrf]")?.content || "";
  const AGAIN = [1000, 2000, 5000];
  const SILENT = 30000;
  let source = null, timer = 0, watchdog = 0, failures = 0, reading = false, again = false;

  function trouble(text) {
    const place = $("#trouble");
    if (place.textContent !== text) place.textContent = text;
    place.hidden = !text;
    const link = $("#link");
    if (link) { link.hidden = Boolean(text) || !source; link.textContent = "live"; }
  }

  function close() {
    clearTimeout(timer);
    clearTimeout(watchdog);
    if (source) source.close();
    source = null;
  }

  function retry(text) {
    close();
    trouble(text);
    timer = setTimeout(refresh, AGAIN[Math.min(failures++, AGAIN.length - 1)]);
  }

  // Reads the page again and replaces its changing part.
  async function refresh() {
    if (reading) { again = true; return; }
    reading = true;
    const address = location.href;
    try {
      const answer = await fetch(address, { headers: { Accept: "text/html" } });
      if (answer.status === 401) { close(); trouble("You are signed out: open the link that kubefoundry start has printed, or sign in again."); return; }
      const read = new DOMParser().parseFromString(await answer.text(), "text/html");
      const part = $("#live", read);
      if (address === location.href && part) {
        if (answer.status >= 500) { retry(part.textContent.replace("That did not work", "").split("All models")[0].trim()); return; }
        put($("#live"), part);
        const [acts, fresh] = [$("#actions"), $("#actions", read)];
        if (acts && fresh && !acts.contains(document.activeElement)) acts.replaceWith(document.importNode(fresh, true));
      }
      failures = 0;
      connect();
    } catch {
      retry("This page's server does not answer, so the page shows its last answer; kubefoundry start starts it again.");
    } finally {
      reading = false;
      if (again) { again = false; refresh(); }
    }
  }

  // Replaces a part of the page. Keeps the focus if its link still exists, the scroll positions and the opened details.
  function put(old, part) {
    const focused = document.activeElement;
    const at = old.contains(focused) ? focused.getAttribute("href") : null;
    const scrolled = [...old.querySelectorAll("pre")].map((block) => block.scrollTop);
    const fresh = document.importNode(part, true);
    old.querySelectorAll("details[open][id]").forEach((details) => fresh.querySelector(`#${details.id}`)?.setAttribute("open", ""));
    old.replaceWith(fresh);
    if (at) [...fresh.querySelectorAll("a")].find((link) => link.getAttribute("href") === at)?.focus();
    fresh.querySelectorAll("pre").forEach((block, index) => { block.scrollTop = scrolled[index] || 0; });
  }

  function connect() {
    const address = $("#live")?.dataset.stream;
    if (!address || document.hidden) { close(); trouble(""); readAgain(); return; }
    if (source && source.address === address) { trouble(""); return; }
    close();
    source = new EventSource(address);
    source.address = address;
    const alive = () => { clearTimeout(watchdog); watchdog = setTimeout(refreshNow, SILENT); };
    source.onopen = () => { failures = 0; alive(); trouble(""); };
    source.onerror = () => retry("The connection to this page's server is lost; trying again.");
    source.addEventListener("beat", alive);
    source.addEventListener("trouble", (event) => { alive(); trouble(event.data); });
    source.addEventListener("stale", () => { close(); refresh(); });
    source.addEventListener("changed", () => { alive(); refresh(); });
    source.addEventListener("row", (event) => { alive(); row(JSON.parse(event.data)); });
    source.addEventListener("gone", (event) => { alive(); find(event.data)?.remove(); count(); });
  }

  // A page without a stream is read again from time to time.
  function readAgain() {
    const seconds = Number($("#live")?.dataset.again || 0);
    if (seconds && !document.hidden) timer = setTimeout(refresh, seconds * 1000);
  }

  // Ages are written as the server writes them (output.duration of the command line).
  function ages() {
    document.querySelectorAll("time[data-age]").forEach((time) => {
      const seconds = (Date.now() - Date.parse(time.dateTime)) / 1000;
      if (Number.isNaN(seconds)) return;
      const [unit, size] = [["d", 86400], ["h", 3600], ["m", 60]].find(([, size]) => seconds >= 2 * size) || ["s", 1];
      time.textContent = `${Math.max(0, Math.floor(seconds / size))}${unit}`;
    });
  }

  function refreshNow() { close(); refresh(); }

  const rows = () => $("#rows");
  const find = (key) => [...(rows()?.children || [])].find((row) => row.dataset.key === key);

  function row({ key, html }) {
    if (!rows()) { refreshNow(); return; }
    const template = document.createElement("template");
    template.innerHTML = html;
    const fresh = template.content.firstElementChild;
    const old = find(key);
    const focused = old?.contains(document.activeElement);
    if (old && old.dataset.order === fresh.dataset.order) old.replaceWith(fresh);
    else {
      old?.remove();
      // The server sorts rows by this text, too.
      const next = [...rows().children].find((row) => fresh.dataset.order < row.dataset.order);
      rows().insertBefore(fresh, next || null);
    }
    if (focused) $("a", fresh)?.focus();
    fresh.classList.add("fresh");
    setTimeout(() => fresh.classList.remove("fresh"), 1200);
    count();
  }

  function count() {
    const phases = [...(rows()?.children || [])].map((row) => row.dataset.phase);
    document.querySelectorAll("[data-count]").forEach((counter) => {
      const counted = counter.dataset.count;
      counter.textContent = String(counted ? phases.filter((phase) => phase === counted).length : phases.length);
    });
  }

  const later = (work, milliseconds) => {
    let waiting = 0;
    return (...what) => { clearTimeout(waiting); waiting = setTimeout(() => work(...what), milliseconds); };
  };

  function filter(form) {
    const look = () => {
      const given = new URLSearchParams(new FormData(form));
      [...given].forEach(([key, value]) => { if (!value) given.delete(key); });
      history.replaceState(null, "", `${form.getAttribute("action")}${given.size ? `?${given}` : ""}`);
      refreshNow();
    };
    form.addEventListener("input", later(look, 200));
    form.addEventListener("submit", (event) => { event.preventDefault(); look(); });
  }

  // Keeps the form and its YAML equal: after an edit of one, the server renders the other and the verdicts.
  function create(form) {
    let newest = 0;
    const ask = later(async (from) => {
      const mine = ++newest;
      const body = new URLSearchParams(new FormData(form));
      body.set("from", from);
      try {
        const answer = await fetch(form.getAttribute("action"), { method: "POST", body });
        // A later edit has sent another request. Only the response to the newest request counts.
        if (mine !== newest) return;
        const read = new DOMParser().parseFromString(await answer.text(), "text/html");
        for (const id of ["verdict", "command", "problem", ...(from === "form" ? ["yaml"] : ["fields"])]) {
          const [old, fresh] = [document.getElementById(id), read.getElementById(id)];
          if (!old || !fresh) continue;
          if (id === "yaml") old.value = fresh.value;
          else old.replaceWith(document.importNode(fresh, true));
        }
        form.dataset.checked = String(mine);
        trouble("");
      } catch {
        trouble("This page's server does not answer; kubefoundry start starts it again.");
      }
    }, 250);
    form.addEventListener("input", (event) => ask(event.target.id === "yaml" ? "yaml" : "form"));
  }

  function logs(place) {
    const box = $("#follow");
    let stream = null;
    box.closest("label").hidden = false;
    box.addEventListener("change", () => {
      if (stream) { stream.close(); stream = null; }
      if (!box.checked) return;
      stream = new EventSource(place.dataset.follow);
      stream.onopen = () => { place.textContent = ""; };
      stream.addEventListener("line", (event) => {
        const below = place.scrollTop + place.clientHeight >= place.scrollHeight - 8;
        place.append(`${event.data}\n`);
        while (place.childNodes.length > 5000) place.firstChild.remove();
        if (below) place.scrollTop = place.scrollHeight;
      });
      stream.addEventListener("stale", () => { stream.close(); box.checked = false; });
    });
    place.scrollTop = place.scrollHeight;
  }

  function chat(form) {
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      const field = form.elements.namedItem("question");
      const question = field.value.trim();
      if (!question) return;
      const conversation = $("#conversation");
      const paragraph = document.createElement("p");
      paragraph.className = "question";
      paragraph.textContent = question;
      const answer = document.createElement("div");
      answer.className = "answer";
      conversation.append(paragraph, answer);
      field.value = "";
      const button = $("button", form);
      button.disabled = true;
      try {
        const came = await fetch(`${form.getAttribute("action")}?stream=1`, {
          method: "POST", body: new URLSearchParams({ question }), headers: { "X-csrf": csrf() },
        });
        const reader = came.body.pipeThrough(new TextDecoderStream()).getReader();
        for (let piece = await reader.read(); !piece.done; piece = await reader.read()) answer.append(piece.value);
      } catch {
        answer.append(" — the answer broke off.");
      } finally {
        button.disabled = false;
        field.focus();
      }
    });
  }

  if ($("#live")) {
    connect();
    setInterval(ages, 10000);
    // A browser opens at most six connections to a server, so a hidden page closes its own.
    document.addEventListener("visibilitychange", () => (document.hidden ? close() : refreshNow()));
    addEventListener("pageshow", (event) => { if (event.persisted) refreshNow(); });
  }
  if ($("#filter")) filter($("#filter"));
  if ($("#create")) create($("#create"));
  if ($("#log")) logs($("#log"));
  if ($("#chat")) chat($("#chat"));
})();
