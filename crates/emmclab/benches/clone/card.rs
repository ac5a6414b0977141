//! A served virtual card: made, filled with files, counted, compared.

use std::fs::{File, read_dir};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::MIB;

const USER_BYTES: u64 = 4096 * MIB;
/// Files of more than this are left out. Unit: bytes.
const FILE_BYTES_MAX: u64 = 64 * MIB;

/// A card that is served until this is dropped.
pub(super) struct Card {
    folder: PathBuf,
    server: Child,
    document: Value,
}

fn emmclab() -> Command {
    Command::new(env!("CARGO_BIN_EXE_emmclab"))
}

/// The standard output of a program that must succeed.
pub(super) fn output(command: &mut Command) -> String {
    let found = command.stdin(Stdio::null()).output().expect("the program starts");
    assert!(found.status.success(), "{command:?}: {}", String::from_utf8_lossy(&found.stderr));
    String::from_utf8(found.stdout).expect("text")
}

impl Card {
    /// A new one, of 4 GiB, served.
    pub(super) fn new(folder: &Path, delays: bool) -> Self {
        let text = output(emmclab().args(["sim", "profiles", "generic-8g"]));
        let text = text
            .replace("user_bytes = 7818182656", &format!("user_bytes = {USER_BYTES}"))
            .replace("enhanced_groups_max = 466", "enhanced_groups_max = 256");
        let profile = folder.with_extension("toml");
        std::fs::write(&profile, text).expect("the profile");
        output(emmclab().args(["sim", "create", "--profile"]).args([&profile, folder]));
        let mount = folder.with_extension("mnt");
        std::fs::create_dir(&mount).expect("a folder");
        let mut server = emmclab();
        server.arg("serve").arg(folder).arg("--fuse").arg(&mount).arg("--loop").arg("--nbd");
        server.arg(folder.with_extension("nbd")).arg("--json").args((!delays).then_some("--no-delay"));
        let mut server = server.stdout(Stdio::piped()).spawn().expect("a server");
        let (mut lines, mut text) = (BufReader::new(server.stdout.take().expect("piped")).lines(), String::new());
        while !text.ends_with("\n}\n") {
            text += &lines.next().expect("the server says where it listens").expect("text");
            text += "\n";
        }
        let document = serde_json::from_str(&text).expect("a document");
        Self { folder: folder.into(), server, document }
    }

    /// The loop device of its user area.
    pub(super) fn loop_device(&self) -> &str {
        let fronts = self.document["fronts"].as_array().expect("fronts");
        let user = fronts.iter().find(|front| front["kind"] == "loop" && front["area"] == "user");
        user.and_then(|front| front["at"].as_str()).expect("a loop device")
    }

    pub(super) fn uri(&self) -> String {
        format!("nbd+unix:///user?socket={}", self.folder.with_extension("nbd").display())
    }

    /// What it was asked to read and to write since it is served. Unit: bytes.
    pub(super) fn requested(&self) -> [u64; 2] {
        let text = output(emmclab().args(["sim", "ctl"]).arg(&self.folder).args(["stats", "--json"]));
        let document: Value = serde_json::from_str(&text).expect("a document");
        ["read", "write"].map(|kind| document["requests"][kind]["bytes"].as_u64().unwrap_or(0))
    }

    /// Makes a GPT, a partition and ext4, and copies files of this machine into it. Returns their sum. Unit: bytes.
    pub(super) fn fill(&self, wanted: u64) -> u64 {
        let disk = self.loop_device();
        let partition = format!("{disk}p1");
        let script = save_table(&self.folder);
        output(Command::new("sh").args(["-c", &format!("sfdisk -q {disk} <{script} && partx -u {disk}")]));
        output(Command::new("mkfs.ext4").args(["-q", &partition]));
        let mounted = Mounted::new(&partition, &self.folder.with_extension("fs"), "rw");
        let (mut sum, mut number) = (0, 0);
        copy(Path::new("/usr"), &mounted.folder, wanted, &mut sum, &mut number);
        assert!(sum + FILE_BYTES_MAX > wanted, "/usr has {sum} bytes of files only");
        sum
    }
}

/// A GPT with one partition, for sfdisk.
fn save_table(folder: &Path) -> String {
    let path = folder.with_extension("table");
    std::fs::write(&path, "label: gpt\nstart=8192\n").expect("the table");
    path.display().to_string()
}

impl Drop for Card {
    fn drop(&mut self) {
        let _ = emmclab().args(["sim", "ctl"]).arg(&self.folder).arg("stop").stdout(Stdio::null()).status();
        let _ = self.server.wait();
    }
}

/// A filesystem that is mounted until this is dropped.
pub(super) struct Mounted {
    pub(super) folder: PathBuf,
}

impl Mounted {
    pub(super) fn new(device: &str, folder: &Path, options: &str) -> Self {
        std::fs::create_dir_all(folder).expect("a folder");
        output(Command::new("mount").args(["-o", options, device]).arg(folder));
        Self { folder: folder.into() }
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.folder).status();
    }
}

/// Copies regular files, by name, until there are enough.
fn copy(from: &Path, to: &Path, wanted: u64, sum: &mut u64, number: &mut u32) {
    let Ok(entries) = read_dir(from) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        let Ok(found) = path.symlink_metadata() else { continue };
        if found.is_dir() {
            copy(&path, to, wanted, sum, number);
        } else if found.is_file() && found.len() <= FILE_BYTES_MAX && *sum + found.len() <= wanted {
            let folder = to.join((*number / 1000).to_string());
            std::fs::create_dir_all(&folder).expect("a folder on the card");
            *sum += std::fs::copy(&path, folder.join(number.to_string())).expect("a file on the card");
            *number += 1;
        }
    }
}

/// Compares all sectors: equal, or not allocated and zeros; then the filesystem and each file.
pub(super) fn compare(source: &Card, target: &Card, folder: &Path) {
    let images = [source, target].map(|card| {
        let image = folder.join("compared").with_extension(card.folder.file_name().expect("a name"));
        output(Command::new("nbdcopy").arg(card.uri()).arg(&image));
        File::open(image).expect("an image")
    });
    let (mut differs, mut at) = (0u64, 0);
    let mut content = [vec![0; MIB as usize], vec![0; MIB as usize]];
    while at < USER_BYTES {
        for (image, content) in images.iter().zip(&mut content) {
            image.read_exact_at(content, at).expect("the image");
        }
        for (sector, (old, new)) in content[0].chunks(512).zip(content[1].chunks(512)).enumerate() {
            if old != new {
                assert!(new.iter().all(|byte| *byte == 0), "byte {}", at + sector as u64 * 512);
                differs += 512;
            }
        }
        at += MIB;
    }
    let partition = format!("{}p1", target.loop_device());
    output(Command::new("partx").args(["-u", target.loop_device()]));
    output(Command::new("e2fsck").args(["-fn", &partition]));
    let old = Mounted::new(&format!("{}p1", source.loop_device()), &folder.join("old"), "ro");
    let new = Mounted::new(&partition, &folder.join("new"), "ro");
    output(Command::new("diff").args(["-r"]).args([&old.folder, &new.folder]));
    println!(
        "Restored: {} MiB that are not allocated read as zeros, all other sectors and all files are equal, and e2fsck \
         finds nothing.",
        differs.div_ceil(MIB)
    );
}
