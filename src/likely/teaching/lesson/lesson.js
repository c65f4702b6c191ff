
(function (root) {
  "use strict";
  var known = JSON.parse(root.querySelector("script[type='application/json']").textContent);
  var end = known.frames.length - 1, now = 0, timer = null;
  var all = function (what) { return Array.prototype.slice.call(root.querySelectorAll(what)); };
  var points = all(".lk-points > *"), paths = all(".lk-moving > path"), names = all(".lk-name");
  var cells = all(".lk-cells tbody tr"), responsibilities = all(".lk-responsibilities tbody tr");
  var caption = root.querySelector(".lk-caption"), slider = root.querySelector("input");
  var walked = root.querySelector(".lk-walked"), mark = root.querySelector(".lk-mark");
  var buttons = {};
  all("button").forEach(function (button) { buttons[button.getAttribute("data-do")] = button; });

  function fill(rows, texts) {
    rows.forEach(function (row, i) {
      var tds = row.querySelectorAll("td");
      for (var j = 0; j < tds.length; j++) { tds[j].textContent = texts[i][j]; }
    });
  }

  function show(i) {
    now = Math.max(0, Math.min(end, i));
    var frame = known.frames[now];
    points.forEach(function (point, p) { point.setAttribute("fill", "#" + frame.fill.slice(6 * p, 6 * p + 6)); });
    paths.forEach(function (path, p) { path.setAttribute("d", frame.paths[p]); });
    names.forEach(function (name, c) {
      name.style.transform = "translate(" + frame.names[c][0] + "px," + frame.names[c][1] + "px)";
    });
    var way = known.way.slice(0, frame.walked), last = way[way.length - 1].split(" ");
    walked.setAttribute("d", "M" + way.join("L"));
    mark.style.transform = "translate(" + last[0] + "px," + last[1] + "px)";
    fill(cells, frame.cells);
    fill(responsibilities, frame.responsibilities);
    caption.textContent = frame.caption;
    slider.value = now;
    slider.setAttribute("aria-valuetext", "step " + frame.step);
    root.setAttribute("data-step", frame.step);
    buttons.first.disabled = buttons.back.disabled = now === 0;
    buttons.next.disabled = buttons.last.disabled = now === end;
  }

  function label(text) {
    ["aria-label", "title"].forEach(function (name) { buttons.play.setAttribute(name, text); });
    buttons.play.textContent = text;
  }

  function pause() {
    clearInterval(timer);
    timer = null;
    caption.setAttribute("aria-live", "polite");
    label("Play");
  }

  function play() {
    if (now === end) { show(0); }
    caption.setAttribute("aria-live", "off");
    label("Pause");
    timer = setInterval(function () {
      show(now + 1);
      if (now === end) { pause(); }
    }, 900);
  }

  var does = {
    first: function () { show(0); },
    back: function () { show(now - 1); },
    next: function () { show(now + 1); },
    last: function () { show(end); }
  };

  function go(what) {
    if (what === "play") {
      if (timer === null) { play(); } else { pause(); }
    } else {
      pause();
      does[what]();
    }
  }

  Object.keys(buttons).forEach(function (what) { buttons[what].addEventListener("click", function () { go(what); }); });
  slider.addEventListener("input", function () { pause(); show(Number(slider.value)); });

  var keys = { ArrowLeft: "back", ArrowRight: "next", Home: "first", End: "last", " ": "play" };
  document.addEventListener("keydown", function (event) {
    var what = keys[event.key], at = event.target;
    var mine = root.contains(at) || (root.hasAttribute("data-page") && at === document.body);
    if (!what || !mine || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) { return; }
    if (at === slider && what !== "play") { return; }
    if (at.tagName === "BUTTON" && what === "play") { return; }
    event.preventDefault();
    go(what);
  });

  function asked() {
    var step = /^#step=(\d+)$/.exec(location.hash);
    for (var i = 0; step && i <= end; i++) {
      if (known.frames[i].step >= Number(step[1])) { return i; }
    }
    return step ? end : 0;
  }

  if (root.hasAttribute("data-page")) {
    window.addEventListener("hashchange", function () { pause(); show(asked()); });
    show(asked());
  } else {
    show(0);
  }
  root.querySelector(".lk-controls").hidden = false;
})(document.currentScript.closest(".lk-lesson"));
