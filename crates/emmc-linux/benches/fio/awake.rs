//! Keeps processors from sleeping: a loop at the lowest priority on each, which yields to everything else.
//!
//! A request to a loop device wakes a kernel thread, and waking a sleeping processor may take ten times as long as the
//! request. Whether it sleeps varies at random, and changes both programs' results alike.

use std::process::{Child, Command, Stdio};

/// The loops; they end when it is dropped.
pub(crate) struct Awake(Vec<Child>);

impl Awake {
    /// Errors: `chrt` is missing, as a sentence.
    pub(crate) fn new() -> Result<Self, String> {
        let mut loops = Self(Vec::new());
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            // Its input is ours: it ends by itself if this program is killed.
            let spin = "exec 3<&0; (read line <&3; kill $$) & while :; do :; done";
            let child = Command::new("chrt").args(["--idle", "0", "sh", "-c", spin]).stdin(Stdio::piped()).spawn();
            loops.0.push(child.map_err(|error| format!("chrt: {error}"))?);
        }
        Ok(loops)
    }
}

impl Drop for Awake {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}
