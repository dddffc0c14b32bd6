// Small helpers of the operator screens; every page works without them.
(() => {
  "use strict";

  // The theme opens filters and menus with links that lead nowhere: for the keyboard they are buttons.
  for (const opener of document.querySelectorAll("a:not([href])")) {
    if (![...opener.attributes].some(({ name }) => /^(x-on:|@)click/.test(name))) continue;
    opener.setAttribute("role", "button");
    opener.tabIndex = 0;
    opener.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      opener.click();
    });
  }

  for (const button of document.querySelectorAll("[data-copy]")) {
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(button.dataset.copy);
      const before = button.textContent;
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = before; }, 1200);
    });
  }

  for (const button of document.querySelectorAll("[data-copy-from]")) {
    button.addEventListener("click", async () => {
      const reply = await fetch(button.dataset.copyFrom);
      await navigator.clipboard.writeText(await reply.text());
      const before = button.textContent;
      button.textContent = reply.ok ? "Copied" : "Not copied";
      setTimeout(() => { button.textContent = before; }, 1200);
    });
  }

  // Live parts: fetched anew and put in place without losing scroll, open folds or the focus.
  const LIVE_MS = 5000;

  class LiveParts {
    constructor(box) {
      this.box = box;
      box.checked = "liveAlways" in box.dataset || new URL(location.href).searchParams.get("live") === "on";
      box.addEventListener("change", () => this.remember());
      setInterval(() => this.refresh(), LIVE_MS);
    }

    remember() {
      const address = new URL(location.href);
      if (this.box.checked) address.searchParams.set("live", "on");
      else address.searchParams.delete("live");
      history.replaceState(null, "", address);
      this.refresh();
    }

    async refresh() {
      if (!this.box.checked || document.hidden || String(getSelection())) return;
      const reply = await fetch(location.href);
      if (!reply.ok) return;
      const fresh = new DOMParser().parseFromString(await reply.text(), "text/html");
      for (const part of document.querySelectorAll("[data-live]")) {
        const now = fresh.getElementById(part.id);
        if (now && now.innerHTML !== part.innerHTML) this.replace(part, now);
      }
    }

    replace(part, now) {
      const scrolls = [...part.querySelectorAll(".t-scroll")].map((box) => [box.scrollLeft, box.scrollTop]);
      const open = new Set([...part.querySelectorAll("details[open][id]")].map((fold) => fold.id));
      const focused = part.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
      part.innerHTML = now.innerHTML;
      part.querySelectorAll(".t-scroll").forEach((box, at) => {
        if (scrolls[at]) [box.scrollLeft, box.scrollTop] = scrolls[at];
      });
      part.querySelectorAll("details[id]").forEach((fold) => { fold.open = open.has(fold.id) || fold.open; });
      if (focused) part.querySelector(`[href="${CSS.escape(focused)}"]`)?.focus({ preventScroll: true });
    }
  }

  const liveSwitch = document.querySelector("[data-live-switch]");
  if (liveSwitch) new LiveParts(liveSwitch);

  const MOST_STRETCHES = 6;

  class TokenView {
    constructor(view) {
      this.view = view;
      this.told = document.querySelector(".t-told");
      this.loading = false;
      this.at = null;
      this.first = view.querySelector(".k");
      view.addEventListener("scroll", () => this.extend(), { passive: true });
      view.addEventListener("mouseover", (event) => this.tell(event.target.closest(".k")));
      view.addEventListener("keydown", (event) => this.move(event));
      for (const link of document.querySelectorAll("[data-signal][href]")) {
        link.addEventListener("click", (event) => this.switchTo(event, link));
      }
      this.extend();
    }

    tell(cell) {
      if (!cell || !this.told) return;
      this.at?.classList.remove("t-at");
      this.at = cell;
      cell.classList.add("t-at");
      const data = cell.dataset;
      const parts = [`#${data.i}`, `id ${data.d}`, JSON.stringify(cell.textContent), `node ${data.n}`];
      if (data.l !== undefined) parts.push(`logprob ${data.l} (p ${Math.exp(Number(data.l)).toPrecision(3)})`);
      if (data.f !== undefined) parts.push(data.o === undefined ? `not trained: ${data.f}` : `trained by leaf ${data.o}`);
      if (data.v !== undefined) parts.push(`weights ${data.v}`);
      this.told.value = parts.join(" · ");
    }

    move(event) {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const cells = [...this.view.querySelectorAll(".k")];
      const index = this.at?.isConnected ? cells.indexOf(this.at) + step : cells.indexOf(this.first);
      if (!cells[index]) return;
      event.preventDefault();
      this.tell(cells[index]);
      cells[index].scrollIntoView({ block: "nearest" });
    }

    switchTo(event, link) {
      event.preventDefault();
      this.view.dataset.signal = link.dataset.signal;
      for (const other of document.querySelectorAll("[data-signal][href]")) {
        other.classList.toggle("t-on", other === link);
        other.toggleAttribute("aria-current", other === link);
      }
      const address = new URL(location.href);
      address.searchParams.set("signal", link.dataset.signal);
      history.replaceState(null, "", address);
    }

    async extend() {
      const { scrollTop, scrollHeight, clientHeight } = this.view;
      if (this.loading) return;
      const stretches = this.view.querySelectorAll(".stretch");
      const first = stretches[0], last = stretches[stretches.length - 1];
      if (scrollTop + clientHeight > scrollHeight - 200 && Number(last.dataset.stop) < Number(last.dataset.last)) {
        await this.load(Number(last.dataset.stop), false);
      } else if (scrollTop < 100 && Number(first.dataset.start) > 0) {
        await this.load(Math.max(0, Number(first.dataset.start) - 512), true, Number(first.dataset.start));
      }
    }

    async load(start, before, until) {
      this.loading = true;
      try {
        const reply = await fetch(`${this.view.dataset.source}?at=${start}${until ? `&to=${until}` : ""}`);
        if (!reply.ok) throw new Error(`ids could not be loaded: ${reply.status}`);
        const holder = document.createElement("div");
        holder.innerHTML = await reply.text();
        this.insert(holder.querySelector(".stretch"), before);
      } finally {
        this.loading = false;
      }
      this.extend();
    }

    insert(stretch, before) {
      if (!stretch) return;
      if (before) {
        const height = this.view.scrollHeight;
        this.view.prepend(stretch);
        this.view.scrollTop += this.view.scrollHeight - height;
      } else {
        this.view.append(stretch);
      }
      const all = this.view.querySelectorAll(".stretch");
      if (all.length <= MOST_STRETCHES) return;
      if (before) {
        all[all.length - 1].remove();
      } else {
        const height = this.view.scrollHeight;
        all[0].remove();
        this.view.scrollTop -= height - this.view.scrollHeight;
      }
    }
  }

  const view = document.querySelector(".tokens[data-source]");
  if (view) new TokenView(view);
})();
