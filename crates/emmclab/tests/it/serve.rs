//! `serve` and `sim ctl` through the binary: messages, refusals, and the data after kill -9.

mod client;
mod damaged;
mod full_disk;
mod killed;
mod shortage;
#[cfg(feature = "tls")]
mod tls;

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{emmclab, save, scratch};
use client::Client;

/// A card of 16 MiB, so that collection is at work after a few hundred writes.
fn card(folder: &Path, name: &str) -> PathBuf {
    let changes = [
        ("user_bytes = 7818182656", "user_bytes = 16777216"),
        ("pages_per_block = 256", "pages_per_block = 16"),
        ("over_provisioning = 0.07", "over_provisioning = 0.3"),
        ("enhanced_groups_max = 466", "enhanced_groups_max = 1"),
    ];
    changed(folder, name, "generic-8g", &changes)
}

/// The same with segment mapping: 32 allocation units, seven of them open; writes are protected against cuts.
fn segment_card(folder: &Path, name: &str) -> PathBuf {
    let changes = [
        ("user_bytes = 7784628224", "user_bytes = 16777216"),
        ("boot_bytes = 1048576", "boot_bytes = 131072"),
        ("group_bytes = 4194304", "group_bytes = 524288"),
        ("pages_per_block = 128", "pages_per_block = 16"),
        ("over_provisioning = 0.02", "over_provisioning = 0.6"),
        ("spare_blocks = 24", "spare_blocks = 4"),
        ("factory_bad_blocks = 6", "factory_bad_blocks = 1"),
        ("WR_REL_SET = 0", "WR_REL_SET = 31"),
    ];
    changed(folder, name, "toshiba-7au", &changes)
}

/// A card of a shipped profile with other values.
fn changed(folder: &Path, name: &str, profile: &str, changes: &[(&str, &str)]) -> PathBuf {
    let mut text = emmclab(["sim", "profiles", profile]).exits(0).stdout;
    for (line, instead) in changes {
        assert!(text.contains(line), "{profile}: no {line}");
        text = text.replace(line, instead);
    }
    let profile = save(folder, "small.toml", text);
    let card = folder.join(name);
    emmclab(["sim", "create", "--profile", &profile, &card.display().to_string()]).exits(0);
    card
}

/// The document that a server prints once it serves.
fn first_document(child: &mut Child) -> serde_json::Value {
    let (mut lines, mut text) = (BufReader::new(child.stdout.take().unwrap()).lines(), String::new());
    // The document ends with the only line that consists of its brace.
    while !text.ends_with("\n}\n") {
        text += &lines.next().expect("the server says where it listens").unwrap();
        text += "\n";
    }
    serde_json::from_str(&text).unwrap()
}

/// A server; killed when it is dropped.
struct Server {
    child: Child,
    socket: PathBuf,
    /// Its output after the start.
    document: serde_json::Value,
}

impl Server {
    /// Serves a card over NBD, without delays.
    fn start(card: &Path) -> Self {
        Self::start_by(Command::new(env!("CARGO_BIN_EXE_emmclab")), card)
    }

    /// The same with no more than this number of open descriptors.
    fn start_with_descriptors(card: &Path, most: u32) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("ulimit -n {most}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_emmclab")]);
        Self::start_by(shell, card)
    }

    fn start_by(mut program: Command, card: &Path) -> Self {
        let socket = card.with_extension("nbd");
        let mut child = program
            .arg("serve")
            .arg(card)
            .arg("--nbd")
            .arg(&socket)
            .args(["--no-delay", "--json"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let document = first_document(&mut child);
        Self { child, socket, document }
    }

    fn client(&self) -> Client {
        Client::connect(&self.socket)
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn control_commands_are_executed_and_a_stop_keeps_all_data() {
    let folder = scratch("serve_orders");
    let card = card(&folder, "card");
    let name = card.display().to_string();
    let mut server = Server::start(&card);
    let mut client = server.client();
    assert_eq!(client.write(4096, &[7; 8192]), 0);
    let state = emmclab(["sim", "ctl", &name, "state", "--json"]).exits(0).json();
    assert_eq!(state["schema"], "emmclab.sim-ctl/1");
    assert_eq!((&state["powered"], &state["mapped"][0]["mapped_sectors"]), (&true.into(), &16.into()));
    emmclab(["sim", "ctl", &name, "inject", "--kind", "read", "--times", "1"]).exits(0);
    assert_ne!(client.read(4096, 512).0, 0);
    assert_eq!(client.read(4096, 512), (0, vec![7; 512]));
    emmclab(["sim", "ctl", &name, "cut"]).exits(0);
    assert_ne!(client.read(4096, 512).0, 0);
    emmclab(["sim", "ctl", &name, "on"]).exits(0);
    assert_eq!(client.read(4096, 512), (0, vec![7; 512]));
    let stats = emmclab(["sim", "ctl", &name, "stats", "--json"]).exits(0).json();
    assert_eq!(stats["requests"]["write"]["bytes"], 8192);
    // Without trims there is no median.
    assert!(stats["requests"]["write"]["latency_us"]["p50"].is_number(), "{stats}");
    assert!(
        stats["requests"]["trim"]["latency_us"].as_object().unwrap().values().all(|time| time.is_null()),
        "{stats}"
    );
    let text = emmclab(["sim", "ctl", &name, "stats"]).exits(0);
    let line = text.stdout.lines().find(|line| line.contains("trim latency us p50")).map(str::trim_end);
    assert!(line.is_some_and(|line| line.ends_with(" -")), "{}", text.stdout);
    // While it is served other processes can inspect it, but not change it.
    emmclab(["sim", "info", &name]).exits(0);
    let second = emmclab(["serve", &name, "--nbd", "0"]).exits(2);
    assert!(second.stderr.contains("in use by another process"), "{}", second.stderr);
    let uri = format!("nbd+unix:///user?socket={}", server.socket.display());
    assert_eq!((&server.document["fronts"][0]["exports"][0]["uri"]), &uri);
    emmclab(["sim", "ctl", &name, "stop"]).exits(0);
    assert!(server.child.wait().unwrap().success());
    let again = Server::start(&card);
    assert_eq!(again.client().read(4096, 8192), (0, vec![7; 8192]));
}

#[test]
fn invalid_input_is_refused_in_one_line() {
    let folder = scratch("serve_refusals");
    let card = card(&folder, "card");
    let name = card.display().to_string();
    let taken = save(&folder, "taken", "not a socket");
    let missing = folder.join("missing").display().to_string();
    for (arguments, expected) in [
        (vec!["serve", &missing, "--nbd", "0"], "no virtual card"),
        (vec!["serve", &name], "at least one of"),
        (vec!["serve", &name, "--nbd", "no such place"], "expected HOST:PORT"),
        (vec!["serve", &name, "--nbd", &taken], "taken"),
        (vec!["serve", &name, "--nbd", "0", "--tls", "require"], "expected --tls-certificates or --tls-psk"),
        (vec!["serve", &name, "--fuse", "x", "--tls-psk", "x"], "--nbd"),
        (vec!["serve", &name, "--nbd", "0", "--tls-psk", "x", "--tls-certificates", "y"], "cannot be used with"),
        (vec!["serve", &name, "--vfio-user", "/nowhere/socket"], "/nowhere/socket"),
        (vec!["serve", &name, "--vfio-user", "x", "--controller", "floppy"], "floppy"),
        (vec!["serve", &name, "--uml", "x", "--dilate", "3"], "cannot be used with"),
        (vec!["serve", &name, "--uml", "x", "--no-delay"], "cannot be used with"),
        (vec!["serve", &name, "--uml", "x", "--nbd", "0"], "cannot be used with"),
        (vec!["serve", &name, "--uml", "x", "--vfio-user", "y"], "cannot be used with"),
        (vec!["serve", &name, "--record", "x", "--nbd", "0"], "--vfio-user <SOCKET>|--uml <DIR>"),
        (vec!["serve", &name, "--uml", "x", "--controller", "hs200"], "User-Mode Linux has no INTx"),
        (vec!["serve", &name, "--uml", &format!("{name}/a b")], "cannot be named to the kernel"),
        (vec!["serve", &name, "--uml", &taken], "taken"),
        (vec!["serve", &name, "--nbd", "0", "--layer", "slow"], "expected delay, fault, fake, drop, volatile or log"),
        (vec!["serve", &name, "--nbd", "0", "--dilate", "0"], "--dilate"),
        (vec!["serve", &name, "--fuse", "/nowhere"], "/nowhere"),
        (vec!["sim", "ctl", &name, "state"], "this card is not being served"),
        (vec!["sim", "ctl", &missing, "state"], "not a virtual card"),
        (vec!["sim", "ctl", &name, "inject", "--kind", "erase"], "[possible values: read, write"),
        (vec!["sim", "ctl", &name, "speed"], "speed"),
    ] {
        let run = emmclab(arguments.iter().chain(&["--json"])).exits(2);
        let document: serde_json::Value = serde_json::from_str(&run.stderr).unwrap();
        let error = document["error"].as_str().unwrap();
        assert!(error.contains(expected), "{arguments:?}: {error}");
    }
    // None of it left a lock or a socket in the folder.
    Server::start(&card).kill();
}

#[test]
fn a_stop_of_a_busy_mount_is_refused_with_the_reason() {
    let folder = scratch("serve_busy");
    let card = card(&folder, "card");
    let (name, mount) = (card.display().to_string(), folder.join("mount"));
    std::fs::create_dir(&mount).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_emmclab"));
    serve.arg("serve").arg(&card).arg("--fuse").arg(&mount).args(["--no-delay", "--json"]);
    if !Path::new("/dev/fuse").exists() || !crate::support::is_root() {
        return crate::support::skip("no FUSE here, or no root");
    }
    let mut child = serve.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let document = first_document(&mut child);
    let areas: Vec<_> = document["fronts"].as_array().unwrap().iter().map(|front| front["area"].as_str()).collect();
    assert_eq!(areas, [Some("user"), Some("boot0"), Some("boot1")], "{document}");
    let held = std::fs::File::open(mount.join("user")).unwrap();
    let refused = emmclab(["sim", "ctl", &name, "stop"]).exits(2);
    assert!(refused.stderr.contains("still serving: cannot unmount"), "{}", refused.stderr);
    // It continues, and ends when it is unused.
    assert_eq!(std::io::Read::read(&mut &held, &mut [0; 512]).unwrap(), 512);
    drop(held);
    emmclab(["sim", "ctl", &name, "stop"]).exits(0);
    assert!(child.wait().unwrap().success());
}

#[test]
#[cfg(not(feature = "tls"))]
fn a_build_without_tls_says_so() {
    let folder = scratch("serve_no_tls");
    let card = card(&folder, "card");
    let keys = save(&folder, "keys.psk", "alice:000102030405060708090a0b0c0d0e0f");
    let refused = emmclab(["serve", &card.display().to_string(), "--nbd", "0", "--tls-psk", &keys]).exits(3);
    assert!(refused.stderr.contains("this build has no TLS") && refused.stdout.is_empty(), "{}", refused.stderr);
}
