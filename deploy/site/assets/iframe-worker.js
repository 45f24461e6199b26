// A browser starts no worker for a page opened from disk: a hidden frame runs the script of the search in its place.
if (location.protocol === "file:")
  window.Worker = class {
    constructor(url) {
      const { port1, port2 } = new MessageChannel();
      port1.onmessage = (event) => this.onmessage?.(event);
      this.port = port1;
      this.frame = document.createElement("iframe");
      this.frame.hidden = true;
      document.body.append(this.frame);
      const scope = this.frame.contentWindow;
      scope.postMessage = (data) => port2.postMessage(data);
      const script = scope.document.createElement("script");
      script.src = url;
      // Messages wait in the port until the script listens.
      script.onload = () => (port2.onmessage = (event) => scope.onmessage(event));
      script.onerror = (event) => this.onerror?.(event);
      scope.document.body.append(script);
    }
    postMessage(data) {
      this.port.postMessage(data);
    }
    terminate() {
      this.port.close();
      this.frame.remove();
    }
  };
