/** Waits for the end of what comes many times a second. */

/** Gives what is told of every move, and calls back once none has come for so many milliseconds: with one timer, since one a move costs as much as the move. */
export function settling(delay: number, then: () => void): () => void {
  let [last, timer] = [0, 0];
  const look = (): void => {
    const left = last + delay - performance.now();
    timer = left > 0 ? window.setTimeout(look, left) : 0;
    if (!timer) then();
  };
  return () => {
    last = performance.now();
    timer ||= window.setTimeout(look, delay);
  };
}
