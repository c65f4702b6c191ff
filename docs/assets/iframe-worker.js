// Search without a server: a page that was opened from a file may start no worker, so its script is run in a hidden frame.
// The theme looks for this name, and loads its index as a script where the address begins with file:.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(address) {
      super();
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const inside = this.frame.contentDocument;
      inside.open();
      const { contentWindow: self } = this.frame;
      self.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      self.importScripts = (...addresses) => Promise.all(addresses.map((each) => add(inside, each)));
      inside.write("<!doctype html><title>search</title><body></body>");
      inside.close();
      this.ready = add(inside, address);
    }

    postMessage(data) {
      this.ready.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data })));
    }

    terminate() {
      this.frame.remove();
    }
  };
  window.Worker = window.IFrameWorker;

  const add = (inside, address) => new Promise((loaded, failed) => {
    const script = inside.createElement("script");
    script.src = address;
    script.addEventListener("load", loaded);
    script.addEventListener("error", failed);
    inside.body.append(script);
  });
}
