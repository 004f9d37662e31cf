// A button that sends a file in pieces; Python asks for each piece, so that none piles up.

const PIECE_BYTES = 2 * 1024 * 1024;

function render({ model, el }) {
  el.classList.add("explorer-upload");
  const input = document.createElement("input");
  input.type = "file";
  input.hidden = true;
  const button = document.createElement("button");
  button.type = "button";
  button.className = "jupyter-button widget-button";
  button.title = "Open a file from this computer";
  el.append(button, input);
  let file = null;

  const update = () => {
    button.textContent = file ? "0 %" : model.get("label");
    button.disabled = model.get("disabled") || file !== null;
    input.accept = model.get("accept");
  };
  const stop = () => {
    file = null;
    input.value = "";
    update();
  };
  const sendPiece = async (offset) => {
    const sent = file;
    if (!sent) return;
    try {
      const piece = await sent.slice(offset, offset + PIECE_BYTES).arrayBuffer();
      if (file !== sent) return;
      button.textContent = `${Math.floor((100 * offset) / sent.size)} %`;
      model.send({ kind: "piece", offset }, {}, [piece]);
    } catch {
      stop(); // the file is gone or cannot be read; the browser has said so
    }
  };
  const onMessage = (message) => {
    if (message.kind === "next") sendPiece(message.offset);
    else if (message.kind === "stop") stop();
  };
  button.addEventListener("click", () => input.click());
  input.addEventListener("change", () => {
    [file] = input.files;
    if (!file) return;
    update();
    model.send({ kind: "start", name: file.name, size: file.size });
  });
  model.on("msg:custom", onMessage);
  model.on("change:disabled", update);
  stop();
  return () => {
    model.off("msg:custom", onMessage);
    model.off("change:disabled", update);
  };
}

export default { render };
