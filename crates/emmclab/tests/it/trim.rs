//! `trim`: layers of a copied tree, written units, and real filesystems on loop devices and on served virtual cards.

use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::keys;
use crate::support::loops::{Loop, Mounted};
use crate::support::{Run, emmclab, save, scratch, skip, testdata};

fn complains(run: &Run, text: &str) {
    assert!(run.stderr.contains(text), "{}: {text} is not in {}", run.args, run.stderr);
}

/// The board's tree with LVM on dm-crypt on its second partition, mounted at /data.
fn stacked(test: &str, crypt_max: u64) -> PathBuf {
    let root = scratch(test).join("board");
    let copied = Command::new("cp").args(["-a", &testdata("sysfs/board"), root.to_str().unwrap()]).status();
    assert!(copied.unwrap().success());
    let write = |path: &str, text: &str| {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("sys/block/mmcblk0/queue/discard_max_bytes", "2199023255040\n");
    write("sys/block/mmcblk0/queue/discard_max_hw_bytes", "2199023255040\n");
    write("sys/block/mmcblk0/queue/discard_granularity", "4194304\n");
    write("sys/block/mmcblk0/mmcblk0p2/holders/dm-0/dev", "253:0\n");
    for (name, mapped, uuid) in [("dm-0", "secret", "CRYPT-LUKS2-00"), ("dm-1", "vg-data", "LVM-abc")] {
        write(&format!("sys/block/{name}/dm/name"), &format!("{mapped}\n"));
        write(&format!("sys/block/{name}/dm/uuid"), &format!("{uuid}\n"));
        write(&format!("sys/block/{name}/queue/discard_max_bytes"), &format!("{crypt_max}\n"));
        write(&format!("sys/block/{name}/dev"), &format!("253:{}\n", &name[3..]));
    }
    write("sys/block/dm-0/holders/dm-1/dev", "253:1\n");
    write("sys/block/dm-1/slaves/dm-0/dev", "253:0\n");
    write("sys/block/dm-0/slaves/mmcblk0p2/dev", "179:2\n");
    write("sys/block/dm-1/stat", "0 0 0 0 9 0 4000000 0 0 0 0 0 0 0 0 0 0\n");
    write("proc/self/mountinfo", "36 35 253:1 / /data rw,noatime - ext4 /dev/mapper/vg-data rw\n");
    std::fs::remove_file(root.join("etc/systemd/system/timers.target.wants/fstrim.timer")).unwrap();
    root
}

#[test]
fn the_layer_that_stops_discards_is_named() {
    let blocked = stacked("trim_blocked", 0);
    let root = blocked.to_str().unwrap();
    for place in ["mmcblk0", "/data", "/dev/mapper/secret", "/dev/vg/data"] {
        let status = emmclab(["trim", "status", "--sysroot", root, place, "--json"]).exits(1).json();
        assert_eq!(status["verdict"], "dm-0 (secret, dm-crypt) stops the discards of /data", "{place}");
        assert_eq!(status["reach"][0]["path"], json!(["dm-1", "dm-0", "mmcblk0p2", "mmcblk0"]));
        assert_eq!((&status["command"]["name"], &status["command"]["argument"]), (&json!("discard"), &json!(3)));
    }
    let open = stacked("trim_open", 1 << 30);
    let status = emmclab(["trim", "status", "--sysroot", open.to_str().unwrap(), "mmcblk0"]).exits(1);
    status.says(&["Nobody trims /data", "nothing discarded"]);
    let probe = save(
        &scratch("trim_probe"),
        "probe.json",
        r#"{"schema":"emmclab.probe/1","parameters":{"discard":{"value":"ignored","unit":"","confidence":"low","declared":[],"evidence":[{"witness":"reads around a discard","seen":"4 KiB reads: 90 us before, 90 us after","value":"ignored"}]}}}"#,
    );
    let args = ["trim", "status", "--sysroot", root, "mmcblk0"].map(String::from);
    let with_probe = args.iter().cloned().chain(["--probe".into(), probe.clone()]).collect();
    keys::documents("trim", &[args.to_vec(), with_probe]);
    let deaf = emmclab(["trim", "status", "--sysroot", open.to_str().unwrap(), "mmcblk0", "--probe", &probe]).exits(1);
    deaf.says(&["The card accepts discards and ignores them"]);
}

#[test]
fn bad_input_is_one_clear_error() {
    let root = stacked("trim_bad", 0);
    let root = root.to_str().unwrap();
    complains(&emmclab(["trim", "status", "--sysroot", root, "/nowhere"]).exits(3), "/nowhere");
    complains(&emmclab(["trim", "status", "--sysroot", root]).exits(2), "several cards: name one of /dev/mmcblk0");
    let other = save(&scratch("trim_other"), "x.json", "{\"schema\":\"emmclab.bench/1\",\"parameters\":{}}");
    complains(
        &emmclab(["trim", "status", "--sysroot", root, "mmcblk0", "--probe", &other]).exits(2),
        "expected the schema emmclab.probe/1, found \"emmclab.bench/1\"",
    );
    complains(&emmclab(["trim", "run", "/no such place"]).exits(3), "/no such place");
    complains(&emmclab(["trim", "run", "/proc"]).exits(3), "/proc");
}

#[test]
fn advice_is_shown_and_a_file_that_exists_is_never_overwritten() {
    let root = stacked("trim_advise", 1 << 30);
    let path = root.to_str().unwrap();
    let args = ["trim", "advise", "--sysroot", path, "mmcblk0"];
    emmclab(args).exits(0).says(&["OnCalendar=weekly", "fstrim \"$point\"", "\"/data\"", "discard"]);
    let service = root.join("etc/systemd/system/emmclab-trim.service");
    assert!(!service.exists(), "only shown");
    let written = emmclab(args.iter().chain(&["--write", "--json"])).exits(0).json();
    assert_eq!(written["written"].as_array().unwrap().len(), 2);
    let text = std::fs::read_to_string(&service).unwrap();
    assert!(text.contains("ExecStart=/bin/sh -c 'for point in \"$@\"; do fstrim \"$point\"; done' sh \"/data\""));
    std::fs::write(&service, "mine").unwrap();
    complains(&emmclab(args.iter().chain(&["--write"])).exits(4), "exists already and is not overwritten");
    assert_eq!(std::fs::read_to_string(&service).unwrap(), "mine");
    // One that the system ships is enough.
    std::fs::write(root.join("etc/systemd/system/fstrim.timer"), "").unwrap();
    emmclab(args).exits(0).says(&["systemctl enable --now fstrim.timer"]);
    // Without systemd it is a job of cron.
    std::fs::remove_dir_all(root.join("etc/systemd")).unwrap();
    emmclab(args.iter().chain(&["--write"])).exits(0);
    let job = std::fs::read_to_string(root.join("etc/cron.weekly/emmclab-trim")).unwrap();
    assert!(job.ends_with("fstrim '/data'\n"), "{job}");
    keys::documents("trim-advise", &[args.map(String::from).to_vec()]);
}

/// Tests and trims the filesystem at `point`; what the test says.
fn obeys(point: &Path) -> (Value, Value) {
    let point = point.to_str().unwrap();
    let status = emmclab(["trim", "status", point, "--test", point, "--test-size", "4MiB", "--json"]).json();
    let trimmed = emmclab(["trim", "run", point, "--step", "16MiB", "--json"]).exits(0).json();
    (status["obedience"].clone(), trimmed)
}

#[test]
fn a_filesystem_on_a_loop_device_is_tested_and_trimmed() {
    let Some(device) = Loop::new("trim_loop", 64 << 20) else { return };
    let point = scratch("trim_loop_mount").join("mount");
    let Some(mounted) = Mounted::new(&device.path, &point, &[]) else { return };
    let (obedience, trimmed) = obeys(&point);
    assert_eq!(obedience["obeys"], true, "{obedience}");
    let one = &trimmed["filesystems"][0];
    assert!(one["ranges"] == 4 && one["trimmed_bytes"].as_u64().unwrap() > 20 << 20, "{trimmed}");
    assert_eq!(one["discarded_on_disk_bytes"], one["trimmed_bytes"], "{trimmed}");
    // Neither the test nor the measurement leaves anything.
    emmclab(["trim", "run", point.to_str().unwrap(), "--measure", "--measure-size", "8MiB"]).exits(0).says(&[
        "512 KiB sequential write",
        "4 KiB random write",
        "MB/s",
    ]);
    let left: Vec<_> = std::fs::read_dir(&point).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(left, ["lost+found"]);
    let args = ["trim", "run", point.to_str().unwrap(), "--measure", "--measure-size", "8MiB"].map(String::from);
    keys::documents("trim-run", &[args.to_vec()]);
    drop(mounted);
}

/// A card of 64 MiB that obeys discards, or not.
#[cfg(feature = "serve")]
fn served(test: &str, obeys_discards: bool) {
    use crate::support::is_root;
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;
    if !is_root() || !Path::new("/dev/fuse").exists() {
        return skip("no root or no FUSE: no served card");
    }
    let folder = scratch(test);
    let profile = emmclab(["sim", "profiles", "generic-8g"]).exits(0).stdout;
    let profile = profile
        .replace("user_bytes = 7818182656", "user_bytes = 67108864")
        .replace("pages_per_block = 256", "pages_per_block = 16")
        .replace("over_provisioning = 0.07", "over_provisioning = 0.3")
        .replace("enhanced_groups_max = 466", "enhanced_groups_max = 1")
        .replace("[ftl]", &format!("[ftl]\ntrim_frees = {obeys_discards}"));
    let (profile, card) = (save(&folder, "small.toml", profile), folder.join("card"));
    let name = card.display().to_string();
    emmclab(["sim", "create", "--profile", &profile, &name]).exits(0);
    let files = folder.join("files");
    std::fs::create_dir(&files).unwrap();
    let mut server = Command::new(env!("CARGO_BIN_EXE_emmclab"));
    server.arg("serve").arg(&card).arg("--fuse").arg(&files).args(["--loop", "--no-delay", "--json"]);
    let mut child = server.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let (mut text, mut lines) = (String::new(), BufReader::new(child.stdout.take().unwrap()).lines());
    while !text.ends_with("\n}\n") {
        let Some(Ok(line)) = lines.next() else {
            let _ = child.wait();
            return skip("no loop device over FUSE here");
        };
        text += &line;
        text += "\n";
    }
    let document: Value = serde_json::from_str(&text).unwrap();
    let fronts = document["fronts"].as_array().unwrap();
    let device = fronts.iter().find_map(|front| {
        let place = ["device", "path", "place", "at"].iter().find_map(|key| front[*key].as_str());
        place.filter(|place| place.starts_with("/dev/loop") && front["area"] == "user").map(str::to_owned)
    });
    let device = device.unwrap_or_else(|| panic!("{document}"));
    let point = folder.join("mount");
    if let Some(mounted) = Mounted::new(&device, &point, &[]) {
        let (obedience, _) = obeys(&point);
        drop(mounted);
        emmclab(["sim", "ctl", &name, "stop"]).exits(0);
        assert!(child.wait().unwrap().success());
        assert_eq!(obedience["obeys"], obeys_discards, "{obedience}");
    } else {
        emmclab(["sim", "ctl", &name, "stop"]).exits(0);
        assert!(child.wait().unwrap().success());
    }
}

#[test]
#[cfg(feature = "serve")]
fn a_served_card_that_obeys_loses_the_content() {
    served("trim_obeys", true);
}

#[test]
#[cfg(feature = "serve")]
fn a_served_card_that_ignores_discards_is_named() {
    served("trim_deaf", false);
}
