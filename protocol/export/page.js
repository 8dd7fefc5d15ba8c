"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const audio = $("audio"), svg = $("svg"), scroll = $("scroll");
  if (!svg) return;
  const length = Math.max(Number(svg.dataset.length), 0.001);
  const rects = [...document.querySelectorAll("#turns rect")];
  const turns = rects.map((el, i) => ({ el, i, s: Number(el.dataset.s), a: Number(el.dataset.a), b: Number(el.dataset.b) }));
  const names = [...document.querySelectorAll(".names li")];
  const marks = [...document.querySelectorAll(".mark")].map((m) => Number(m.dataset.a));
  let at = 0, zoom = 1;

  const clock = (s, tenths) => {
    const t = tenths ? Math.floor(s * 10 + 1e-6) : Math.floor(s + 1e-6) * 10;
    const sec = Math.floor(t / 10), h = Math.floor(sec / 3600), m = Math.floor(sec / 60) % 60;
    const two = (n) => String(n).padStart(2, "0");
    return (h ? h + ":" + two(m) : m) + ":" + two(sec % 60) + (tenths ? "." + (t % 10) : "");
  };

  // The axis has as many marks as there is room for, whatever the zoom.
  const steps = [0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 86400];
  function axis() {
    const w = svg.getBoundingClientRect().width || 1;
    const step = steps.find((s) => (s / length) * w >= 80) || 86400;
    const g = $("axis");
    // Only what is in sight and a screen on either side: a day has many tenths.
    const from = Math.max(0, ((scroll.scrollLeft - scroll.clientWidth) / w) * length);
    const to = Math.min(length, ((scroll.scrollLeft + 2 * scroll.clientWidth) / w) * length);
    const parts = [];
    for (let k = Math.ceil(from / step); k * step <= to; k++) {
      const x = ((k * step) / length) * 100;
      const line = document.createElementNS(svg.namespaceURI, "line");
      line.setAttribute("x1", x + "%"); line.setAttribute("x2", x + "%");
      line.setAttribute("y1", 20); line.setAttribute("y2", "100%");
      const text = document.createElementNS(svg.namespaceURI, "text");
      text.setAttribute("x", x + "%"); text.setAttribute("dx", 4); text.setAttribute("y", 14);
      text.textContent = clock(k * step, step < 1);
      parts.push(line, text);
    }
    g.replaceChildren(...parts);
  }

  // Zooming keeps the place under the middle, or under the pointer, still.
  function zoomTo(z, clientX) {
    const box = scroll.getBoundingClientRect();
    const x = clientX === undefined ? scroll.clientWidth / 2 : clientX - box.left;
    const place = (scroll.scrollLeft + x) / (scroll.clientWidth * zoom);
    zoom = Math.min(Math.max(z, 1), Math.max(1, length * 2));
    svg.style.width = zoom * 100 + "%";
    scroll.scrollLeft = place * scroll.clientWidth * zoom - x;
    axis();
  }

  function show() {
    $("clock").textContent = clock(at, true);
    const x = (at / length) * 100 + "%";
    $("head").setAttribute("x1", x); $("head").setAttribute("x2", x);
    const speaking = new Set();
    for (const t of turns) {
      const now = t.a <= at && at < t.b;
      if (now) speaking.add(t.s);
      if (t.now !== now) t.el.classList.toggle("now", (t.now = now));
    }
    names.forEach((n, i) => n.classList.toggle("now", speaking.has(i)));
    const text = [...speaking].map((s) => names[s].textContent).join(", ");
    if ($("speaking").textContent !== text) $("speaking").textContent = text;
  }

  function reveal() {
    const x = (at / length) * scroll.clientWidth * zoom;
    if (x < scroll.scrollLeft || x > scroll.scrollLeft + scroll.clientWidth) scroll.scrollLeft = x - scroll.clientWidth / 4;
  }

  function seek(s) {
    at = Math.min(Math.max(s, 0), length);
    if (audio && audio.readyState > 0) audio.currentTime = Math.min(at, audio.duration || at);
    else if (audio) audio.addEventListener("loadedmetadata", () => { audio.currentTime = at; }, { once: true });
    show(); reveal();
  }
  const trouble = (text) => { $("trouble").textContent = text; $("trouble").hidden = false; };
  function play() {
    if (audio) audio.play().catch((e) => { if (e.name !== "AbortError") trouble("The audio cannot be played: " + e.message); });
  }
  const toggle = () => { if (audio) { if (audio.paused) play(); else audio.pause(); } };
  const from = (s) => { seek(s); play(); };

  function focus(i) {
    for (const t of turns) t.el.setAttribute("tabindex", t.i === i ? "0" : "-1");
    turns[i].el.focus({ preventScroll: true });
    const box = turns[i].el.getBoundingClientRect(), view = scroll.getBoundingClientRect();
    if (box.left < view.left || box.right > view.right) scroll.scrollLeft += box.left - view.left - view.width / 4;
  }
  // The turn of the next lane that lies nearest in time.
  function lane(i, by) {
    const mid = (turns[i].a + turns[i].b) / 2;
    for (let s = turns[i].s + by; s >= 0 && s < names.length; s += by) {
      let best = -1, gap = Infinity;
      for (const t of turns) {
        const d = Math.abs((t.a + t.b) / 2 - mid);
        if (t.s === s && d < gap) { gap = d; best = t.i; }
      }
      if (best >= 0) return focus(best);
    }
  }
  function mark(by) {
    const next = by > 0 ? marks.find((m) => m > at + 0.05) : [...marks].reverse().find((m) => m < at - 0.5);
    if (next !== undefined) seek(next);
  }

  svg.addEventListener("click", (e) => {
    const rect = e.target.closest("#turns rect"), m = e.target.closest(".mark");
    if (rect) { focus(rects.indexOf(rect)); return from(Number(rect.dataset.a)); }
    if (m) return from(Number(m.dataset.a));
    const box = svg.getBoundingClientRect();
    seek(((e.clientX - box.left) / box.width) * length);
  });
  document.addEventListener("click", (e) => {
    const go = e.target.closest(".go");
    if (go) from(Number(go.dataset.a));
  });
  $("in").addEventListener("click", () => zoomTo(zoom * 2));
  $("out").addEventListener("click", () => zoomTo(zoom / 2));
  $("fit").addEventListener("click", () => zoomTo(1));
  scroll.addEventListener("wheel", (e) => {
    if (!e.ctrlKey && !e.metaKey) return;
    e.preventDefault();
    zoomTo(zoom * Math.exp(-e.deltaY / 300), e.clientX);
  }, { passive: false });
  scroll.addEventListener("scroll", axis, { passive: true });
  new ResizeObserver(axis).observe(scroll);

  document.addEventListener("keydown", (e) => {
    if (e.altKey || e.ctrlKey || e.metaKey || e.target.closest("select, audio")) return;
    const turn = rects.indexOf(e.target), button = e.target.closest("button, summary");
    const keys = {
      "ArrowLeft": () => (turn < 0 ? seek(at - 5) : turn > 0 && focus(turn - 1)),
      "ArrowRight": () => (turn < 0 ? seek(at + 5) : turn + 1 < turns.length && focus(turn + 1)),
      "Home": turn >= 0 && (() => focus(0)),
      "End": turn >= 0 && (() => focus(turns.length - 1)),
      "ArrowUp": turn >= 0 && (() => lane(turn, -1)),
      "ArrowDown": turn >= 0 && (() => lane(turn, 1)),
      "Enter": turn >= 0 && (() => from(turns[turn].a)),
      " ": !button && toggle,
      "+": () => zoomTo(zoom * 2), "=": () => zoomTo(zoom * 2), "-": () => zoomTo(zoom / 2), "0": () => zoomTo(1),
      "[": () => mark(-1), "]": () => mark(1),
    };
    if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
  });

  if (audio) {
    const button = $("play");
    button.addEventListener("click", toggle);
    $("back").addEventListener("click", () => seek(at - 5));
    $("forth").addEventListener("click", () => seek(at + 5));
    $("speed").addEventListener("change", (e) => { audio.playbackRate = Number(e.target.value); });
    const frame = () => {
      at = audio.currentTime; show();
      if (!audio.paused) { reveal(); requestAnimationFrame(frame); }
    };
    const state = () => {
      button.setAttribute("aria-pressed", String(!audio.paused));
      button.querySelector(".word").textContent = audio.paused ? "Play" : "Pause";
    };
    audio.addEventListener("play", () => { state(); frame(); });
    audio.addEventListener("pause", state);
    audio.addEventListener("ended", state);
    audio.addEventListener("seeked", () => { if (audio.paused) { at = audio.currentTime; show(); } });
    const lost = () => trouble(audio.src.startsWith("data:") ? "This browser cannot play the audio of this page." :
      "The audio is not where this page expects it: " + decodeURIComponent(audio.getAttribute("src")));
    audio.addEventListener("error", lost);
    if (audio.error) lost();
  }
  axis(); show();
})();
