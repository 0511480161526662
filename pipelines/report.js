// Plays a recording, with a line that runs over its timeline and the words lit as they are said.
let player = null, playing = null, button = null;

function stop() {
  if (player) player.pause();
  if (button) button.textContent = "▶";
  if (playing) {
    playing.classList.remove("playing");
    playing.querySelectorAll(".now").forEach((word) => word.classList.remove("now"));
  }
  player = playing = button = null;
}

function follow() {
  if (!player) return;
  const at = (100 * player.currentTime * 1000) / Number(playing.dataset.ms);
  playing.querySelector(".playhead").style.left = Math.min(100, at) + "%";
  for (const word of playing.querySelectorAll(".word")) {
    const start = parseFloat(word.style.left);
    word.classList.toggle("now", start <= at && at < start + parseFloat(word.style.width));
  }
  requestAnimationFrame(follow);
}

for (const each of document.querySelectorAll("button[data-audio]")) {
  each.addEventListener("click", () => {
    const again = each === button;
    const from = player && playing === each.closest(".timeline") ? player.currentTime : 0;
    stop();
    if (again) return;
    [player, playing, button] = [new Audio(each.dataset.audio), each.closest(".timeline"), each];
    // Before and after can be changed while they play: the other one goes on at the same place.
    player.currentTime = from;
    player.addEventListener("ended", stop);
    each.textContent = "■";
    playing.classList.add("playing");
    player.play();
    follow();
  });
}
