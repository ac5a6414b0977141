//! `erase` on devices with errors, without the kind, and read-only: one clear error each, and nothing else changes.

use std::os::unix::fs::{FileExt, PermissionsExt};
use std::process::Command;

use crate::erase::{MIB, complains, erase};
use crate::support::loops::{Loop, succeeds};
use crate::support::served::{ServedCard, small_card};
use crate::support::{is_root, save, scratch, skip};

/// Places that hold content, a MiB each. Unit: MiB.
const FILLED: [u64; 6] = [0, 100, 255, 299, 300, 550];

fn fill(device: &str) {
    let target = std::fs::OpenOptions::new().write(true).open(device).unwrap();
    for at in FILLED {
        target.write_all_at(&vec![0x5a; MIB as usize], at * MIB).unwrap();
    }
    target.sync_all().unwrap();
    // What the kernel has in memory is not what the card has.
    succeeds("blockdev", &["--flushbufs", device]);
}

/// Whether the content at a place is there.
fn holds(device: &str, mib: u64) -> bool {
    let mut found = vec![0; MIB as usize];
    succeeds("blockdev", &["--flushbufs", device]);
    std::fs::File::open(device).unwrap().read_exact_at(&mut found, mib * MIB).unwrap();
    found.iter().all(|byte| *byte == 0x5a)
}

#[test]
fn an_input_output_error_within_a_range_is_reported_and_resumed() {
    let card = small_card(&scratch("erase_eio"), "card", 600, &[]);
    let fault = "fault:kind=trim,from=314572800,to=315621376";
    let Some(served) = ServedCard::start(&card, &["--loop", "--layer", fault]) else { return };
    let device = served.device.clone().unwrap();
    let name = device.trim_start_matches("/dev/").to_owned();
    fill(&device);
    let words = [device.as_str(), "discard", "--range", "0:400MiB", "--destroy", "--yes-i-mean", &name, "--json"];
    let failed = erase(&words).exits(3).json();
    let done = &failed["done"][0];
    assert_eq!((&done["ended"], &done["to_bytes"]), (&"lost".into(), &(256 * MIB).into()), "{failed}");
    assert_eq!(done["unsure"], serde_json::json!([256 * MIB, 400 * MIB]), "{failed}");
    let why = done["reason"].as_str().unwrap();
    assert!(why.contains("Input/output error") && !why.contains("CMD"), "{why}");
    // Below that byte all is erased; what has the error and what is behind the range is there.
    let found = FILLED.map(|at| holds(&device, at));
    assert!(!found[0] && !found[1] && !found[2] && found[4] && found[5], "{found:?}");
    let next = failed["next"][0].as_str().unwrap().strip_prefix("resume: emmclab erase ").unwrap();
    assert!(next.contains("--from 256MiB"), "{next}");
    let again: Vec<&str> = next.split(' ').chain(["--yes-i-mean", &name]).collect();
    erase(&again).exits(3).says(&["Input/output error", "everything below byte 268435456 is erased"]);
    let beside = [device.as_str(), "discard", "--range", "400MiB:200MiB", "--destroy", "--yes-i-mean", &name];
    erase(&beside).exits(0);
    assert!(holds(&device, 300) && !holds(&device, 550));
}

#[test]
fn a_kind_that_the_kernel_does_not_support_changes_nothing() {
    let Some(device) = Loop::new("erase_secure", 8 << 20) else { return };
    let content = vec![0x5a; 8 << 20];
    std::fs::write(&device.path, &content).unwrap();
    let words = [&device.path, "secure-erase", "--destroy", "--yes-i-mean", device.name()];
    let refused = erase(&words).exits(3);
    complains(&refused, "has no secure-erase: the kernel does not support that for it; nothing was erased");
    assert_eq!(refused.stdout, "");
    assert_eq!(std::fs::read(&device.path).unwrap(), content);
    // After another kind the report has both, and no command that resumes what there is not.
    let words = [&device.path, "zero", "secure-erase", "--range", "4MiB:4MiB", "--destroy", "--json", "--yes-i-mean"];
    let both = erase(&[&words[..], &[device.name()]].concat()).exits(3).json();
    assert_eq!((&both["done"][0]["ended"], &both["done"][1]["ended"]), (&"complete".into(), &"unsupported".into()));
    assert!(both["next"].as_array().unwrap().is_empty() && both["done"][1]["unsure"].is_null(), "{both}");
    let after = std::fs::read(&device.path).unwrap();
    assert!(after.iter().enumerate().all(|(at, byte)| (*byte == 0) == (at >> 22 == 1)));
}

#[test]
fn a_read_only_loop_device_is_refused() {
    if !is_root() {
        return skip("not root: no loop device");
    }
    let file = save(&scratch("erase_read_only"), "image", vec![0x5a; 4 << 20]);
    let attached = Command::new("losetup").args(["--find", "--show", "--read-only", &file]).output();
    let Some(attached) = attached.ok().filter(|output| output.status.success()) else {
        return skip("no loop devices");
    };
    let device = String::from_utf8(attached.stdout).unwrap().trim().to_owned();
    let name = device.trim_start_matches("/dev/");
    let runs: Vec<_> = ["discard", "secure-erase", "zero"]
        .into_iter()
        .map(|kind| erase(&[&device, kind, "--destroy", "--yes-i-mean", name]))
        .collect();
    assert!(succeeds("losetup", &["--detach", &device]));
    for run in runs {
        complains(&run.exits(4), &format!("{name} is read-only; nothing was sent"));
    }
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 0x5a));
}

#[test]
fn a_read_only_file_is_refused_for_root_too() {
    let file = save(&scratch("erase_mode"), "image", vec![0x5a; 4 << 20]);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o444)).unwrap();
    if !is_root() {
        skip("not root: the same as for others");
    }
    for kind in ["discard", "zero"] {
        let refused = erase(&[&file, kind, "--destroy"]).exits(3);
        complains(&refused, "nothing was sent");
        assert_eq!(refused.stdout, "");
    }
    assert!(std::fs::read(&file).unwrap().iter().all(|byte| *byte == 0x5a));
}
