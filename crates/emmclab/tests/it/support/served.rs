//! A virtual card that is served as files, and with root as loop devices.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Run, command, emmclab, save};

/// A card that is served until this is dropped.
pub(crate) struct ServedCard {
    pub(crate) folder: PathBuf,
    pub(crate) mount: PathBuf,
    /// The loop device of its user area, if it was asked for.
    pub(crate) device: Option<String>,
    /// Those of all areas.
    loops: Vec<String>,
    child: Child,
}

/// A new card of this many MiB with small blocks, so that collection is at work after a few hundred writes. `changes`:
/// texts of its profile and what stands there instead.
pub(crate) fn small_card(folder: &Path, name: &str, mib: u64, changes: &[(&str, &str)]) -> PathBuf {
    let text = emmclab(["sim", "profiles", "generic-8g"]).exits(0).stdout;
    let size = format!("user_bytes = {}", mib << 20);
    let small = [
        ("user_bytes = 7818182656", size.as_str()),
        ("pages_per_block = 256", "pages_per_block = 16"),
        ("over_provisioning = 0.07", "over_provisioning = 0.3"),
        ("enhanced_groups_max = 466", "enhanced_groups_max = 1"),
    ];
    let change = |text: String, (from, to): &(&str, &str)| {
        assert!(text.contains(from), "no {from} in the profile");
        text.replace(from, to)
    };
    let text = small.iter().chain(changes).fold(text, change);
    let profile = save(folder, &format!("{name}.toml"), text);
    let card = folder.join(name);
    emmclab(["sim", "create", "--profile", &profile, card.to_str().unwrap()]).exits(0);
    card
}

impl ServedCard {
    /// Serves a card without delays; `None` where files or loop devices cannot be had.
    pub(crate) fn start(card: &Path, options: &[&str]) -> Option<Self> {
        let has_loop = options.contains(&"--loop");
        if !Path::new("/dev/fuse").exists() || has_loop && !super::is_root() {
            super::skip("no /dev/fuse, or not root");
            return None;
        }
        let mount = card.with_extension("mnt");
        std::fs::create_dir_all(&mount).unwrap();
        let mut command = command();
        command.arg("serve").arg(card).arg("--fuse").arg(&mount).args(["--no-delay", "--json"]).args(options);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let (mut lines, mut text) = (BufReader::new(child.stdout.take().unwrap()).lines(), String::new());
        // The document ends with the only line that consists of its brace.
        while !text.ends_with("\n}\n") {
            text += &lines.next().expect("the server says where it serves").unwrap();
            text += "\n";
        }
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        let fronts = document["fronts"].as_array().unwrap();
        let loops = fronts.iter().filter(|front| front["kind"] == "loop");
        let at = |front: &serde_json::Value| front["at"].as_str().unwrap().to_owned();
        let device = loops.clone().find(|front| front["area"] == "user").map(at);
        let loops = loops.map(at).collect();
        Some(Self { folder: card.into(), mount, device, loops, child })
    }

    /// Its user area as a file.
    pub(crate) fn file(&self) -> PathBuf {
        self.mount.join("user")
    }

    /// Gives the card an order.
    pub(crate) fn ctl(&self, words: &[&str]) -> Run {
        emmclab(["sim", "ctl", self.folder.to_str().unwrap()].iter().chain(words)).exits(0)
    }

    /// Ends its server without a word, as a card that is pulled.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for ServedCard {
    fn drop(&mut self) {
        let stop = ["sim", "ctl", self.folder.to_str().unwrap(), "stop"];
        if emmclab(stop).code != 0 {
            let _ = self.child.kill();
            for device in &self.loops {
                let _ = Command::new("losetup").args(["--detach", device]).status();
            }
            let _ = Command::new("umount").arg("-l").arg(&self.mount).stderr(Stdio::null()).status();
        }
        let _ = self.child.wait();
    }
}
