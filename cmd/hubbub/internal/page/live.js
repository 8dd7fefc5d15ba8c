"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const SPAN = 60; // seconds on the timeline, Shown of package page
  const captions = new URLSearchParams(location.search).has("captions");
  document.documentElement.classList.toggle("captions", captions);
  const transcript = $("transcript"), said = $("said"), names = $("names"), bars = $("bars");
  const still = matchMedia("(prefers-reduced-motion: reduce)");
  let state = { now: 0, rate: 0, status: "connecting", speakers: [] };
  let at = 0; // when state arrived, in seconds
  let turns = []; // in order of their starts
  const byID = new Map();
  let follows = true;

  const clock = (s) => {
    const d = Math.floor(s + 1e-6), two = (n) => String(n).padStart(2, "0");
    const h = Math.floor(d / 3600), m = Math.floor(d / 60) % 60;
    return (h ? h + ":" + two(m) : m) + ":" + two(d % 60);
  };
  const seconds = () => performance.now() / 1000;
  // Between two messages the clock goes on by itself, for a second at most.
  const now = () => state.now + (still.matches ? 0 : Math.min(seconds() - at, 1) * state.rate);
  // Without a stream, nobody knows who is speaking.
  const speaks = (s) => s.open && (!state.status || state.status === "paused");
  const speaker = (id) => state.speakers.find((s) => s.id === id) || { name: "", colour: 0 };

  function take(m) {
    if (m.reset) {
      turns = [];
      byID.clear();
      said.replaceChildren();
    }
    said.setAttribute("aria-live", m.reset ? "off" : "polite"); // screen readers read out what is new only
    const old = state.speakers;
    state = m;
    at = seconds();
    for (const t of m.turns || []) {
      const known = byID.get(t.id);
      if (known) {
        Object.assign(known, t);
      } else {
        byID.set(t.id, t);
        let i = turns.length;
        while (i > 0 && turns[i - 1].a > t.a) i--;
        turns.splice(i, 0, t);
      }
    }
    if (JSON.stringify(old) !== JSON.stringify(m.speakers)) lanes();
    if (looks(old) !== looks(m.speakers)) for (const t of turns) if (t.el) dress(t.el, speaker(t.s), t.el.firstChild);
    document.title = m.title ? m.title + " · hubbub" : "hubbub";
    $("title").textContent = m.title;
    document.body.classList.toggle("wordless", !turns.some((t) => t.t));
    if (!captions) for (const t of m.turns || []) line(byID.get(t.id));
    status();
    if (follows) transcript.scrollTop = transcript.scrollHeight;
    if (still.matches) draw();
  }

  // dress shows a speaker in an element that has a place for the name.
  function dress(el, s, place) {
    el.className = "s" + s.colour + (s.muted ? " muted" : "");
    if (place.textContent !== s.name) place.textContent = s.name;
  }

  function lanes() {
    document.body.style.setProperty("--lanes", Math.max(state.speakers.length, 1));
    while (names.children.length > state.speakers.length) names.lastChild.remove();
    state.speakers.forEach((s, i) => {
      let li = names.children[i];
      if (!li) {
        li = names.appendChild(document.createElement("li"));
        li.appendChild(document.createElement("span")).dir = "auto";
      }
      dress(li, s, li.firstChild);
    });
  }

  function status() {
    $("status").textContent = state.status;
    state.speakers.forEach((s, i) => {
      names.children[i].classList.toggle("now", speaks(s));
      names.children[i].setAttribute("aria-current", speaks(s));
    });
    if (captions) caption();
  }

  // looks is what of the speakers shows in the transcript.
  const looks = (speakers) => JSON.stringify(speakers.map((s) => [s.id, s.name, s.muted]));

  function element(t) {
    const li = document.createElement("li");
    for (const tag of ["b", "span"]) li.appendChild(document.createElement(tag)).dir = "auto";
    dress(li, speaker(t.s), li.firstChild);
    li.lastChild.textContent = t.t || "";
    return li;
  }

  // line shows the words of a turn; those of an earlier one may come later.
  function line(t) {
    if (!t.t) return;
    if (t.el) {
      t.el.lastChild.textContent = t.t;
      return;
    }
    t.el = element(t);
    let i = turns.indexOf(t) + 1;
    while (i < turns.length && !turns[i].el) i++;
    said.insertBefore(t.el, i < turns.length ? turns[i].el : null);
  }

  // caption shows the newest words in two lines, or without a recogniser who is
  // speaking. The beginning of a longer turn is left out, its speaker is not.
  let captioned = "";
  function caption() {
    const spoken = turns.filter((t) => t.t && !speaker(t.s).muted).slice(-2);
    const open = state.speakers.filter((s) => speaks(s) && !s.muted).slice(-2);
    const shown = spoken.length ? spoken : open.map((s) => ({ s: s.id }));
    const key = JSON.stringify([shown.map((t) => [speaker(t.s), t.t]), transcript.clientWidth, transcript.clientHeight]);
    if (key === captioned) return;
    captioned = key;
    said.replaceChildren();
    let lines = 2;
    for (const t of shown.reverse()) {
      if (lines < 1) break;
      const li = element(t);
      said.prepend(li);
      const one = parseFloat(getComputedStyle(li).lineHeight), height = () => Math.round(li.offsetHeight / one);
      if (height() > lines) {
        const text = [...t.t];
        let low = 0, high = text.length; // the words from high on fit
        while (high - low > 1) {
          const middle = (low + high) >> 1;
          li.lastChild.textContent = "… " + text.slice(middle).join("");
          if (height() > lines) low = middle;
          else high = middle;
        }
        const space = text.indexOf(" ", high);
        li.lastChild.textContent = "… " + text.slice(space >= 0 && space - high < 20 ? space + 1 : high).join("");
      }
      lines -= height();
    }
  }

  function draw() {
    const t = now();
    $("clock").textContent = clock(t);
    const w = bars.clientWidth, h = bars.clientHeight, scale = devicePixelRatio || 1;
    if (captions || !w || !h) return;
    if (bars.width !== Math.round(w * scale) || bars.height !== Math.round(h * scale)) {
      bars.width = Math.round(w * scale);
      bars.height = Math.round(h * scale);
    }
    const c = bars.getContext("2d"), style = getComputedStyle(names), colour = (name) => style.getPropertyValue(name);
    c.setTransform(scale, 0, 0, scale, 0, 0);
    c.clearRect(0, 0, w, h);
    const from = Math.max(t - SPAN, 0), x = (s) => ((s - from) / SPAN) * w, top = parseFloat(style.paddingTop);
    const font = parseFloat(style.fontSize);
    c.font = 0.7 * font + "px " + style.fontFamily;
    c.textBaseline = "middle";
    c.lineWidth = 1;
    const step = [10, 20, 30].find((d) => (d / SPAN) * w > c.measureText(clock(t)).width + 8) || 60;
    for (let s = Math.ceil(Math.max(from, 0) / step) * step; s <= t; s += step) {
      c.strokeStyle = colour("--rule");
      c.beginPath();
      c.moveTo(x(s), top * 0.8);
      c.lineTo(x(s), h);
      c.stroke();
      c.fillStyle = colour("--dim");
      if (x(s) + 2.5 * font < w) c.fillText(clock(s), x(s) + 4, top / 2);
    }
    for (const g of state.gaps || []) {
      const left = x(Math.max(g.start, from)), width = x(Math.min(g.end, t)) - left;
      if (width <= 0) continue;
      c.fillStyle = colour("--dim");
      c.globalAlpha = 0.4;
      c.fillRect(left, top, Math.max(width, 2), h - top);
      c.globalAlpha = 1;
      c.fillStyle = colour("--fg");
      if (width > 3 * font) c.fillText("gap", left + 4, top + font / 2);
    }
    state.speakers.forEach((s, i) => {
      const lane = names.children[i];
      const y = lane.offsetTop - names.offsetTop, lh = lane.offsetHeight;
      c.fillStyle = colour("--c" + s.colour);
      c.globalAlpha = s.muted ? 0.35 : 1;
      const bar = (a, b) => {
        if (b <= from || a >= t) return;
        const left = x(Math.max(a, from)), right = x(Math.min(b, t));
        c.beginPath();
        c.roundRect(left, y + lh * 0.18, Math.max(right - left, 2), lh * 0.64, Math.min(lh * 0.12, 8, (right - left) / 2));
        c.fill();
      };
      for (const turn of turns) if (turn.s === s.id) bar(turn.a, turn.b);
      if (s.open) bar(s.since, t);
    });
    c.globalAlpha = 1;
    c.fillStyle = colour("--brand");
    c.fillRect(Math.min(x(t), w - 2), top * 0.8, 2, h);
  }

  function frame() {
    draw();
    if (!still.matches) requestAnimationFrame(frame);
  }
  still.addEventListener("change", frame);
  frame();

  transcript.addEventListener("scroll", () => {
    follows = transcript.scrollHeight - transcript.scrollTop - transcript.clientHeight < 20;
    $("newest").hidden = follows;
  });
  $("newest").addEventListener("click", () => { transcript.scrollTop = transcript.scrollHeight; });
  addEventListener("resize", () => { if (captions) caption(); if (follows) transcript.scrollTop = transcript.scrollHeight; draw(); });

  const events = new EventSource(location.pathname.replace(/\/*$/, "/events"));
  events.onmessage = (e) => take(JSON.parse(e.data));
  events.addEventListener("end", () => events.close());
  events.onerror = () => {
    if (state.status === "ended") return events.close();
    state.rate = 0;
    state.status = events.readyState === EventSource.CLOSED ? "the session is over" : "connection lost, trying again";
    status();
  };
})();
