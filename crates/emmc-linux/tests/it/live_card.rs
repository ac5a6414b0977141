//! Commands to a live card: the shim replaces the card and records every command.
//!
//! The test runs itself again with the shim preloaded; the second process reads the card and prints the result.

use crate::shim;
use std::path::Path;

use emmc_linux::LiveCard;
use emmc_port::CardData;

/// What the second process does.
const STEP: &str = "EMMC_LINUX_TEST_STEP";

/// The result of a run.
struct Outcome {
    stdout: String,
    log: Vec<String>,
}

#[test]
fn a_live_card_is_only_read() {
    if let Ok(step) = std::env::var(STEP) {
        return under_the_shim(&step);
    }
    let Some(shim) = shim::build() else { return };
    reading_sends_cmd8_and_cmd13(shim);
    without_rawio_the_note_says_so(shim);
    vendor_health_is_cmd56(shim);
    a_refused_step_sends_nothing(shim);
    a_partition_leads_to_its_card(shim);
}

fn reading_sends_cmd8_and_cmd13(shim: &Path) {
    let outcome = run(shim, "read", &[]);
    assert_eq!(
        outcome.log,
        [
            "open /dev/mmcblk249 O_RDONLY",
            "CMD8 read arg=0x00000000 blksz=512 blocks=1 flags=0xb5",
            "CMD13 read arg=0x00010000 blksz=0 blocks=0 flags=0x15",
        ]
    );
    for line in ["ext_csd 512 of 512", "rev 8", "sec_count 61071360", "kind eMMC", "status 0x00000900", "taken yes"] {
        assert!(outcome.stdout.contains(line), "{line}: {}", outcome.stdout);
    }
}

fn without_rawio_the_note_says_so(shim: &Path) {
    let outcome = run(shim, "read", &[("EMMC_SHIM_DENY", "1")]);
    assert_eq!(outcome.log.len(), 2, "{:?}", outcome.log);
    assert!(outcome.log[1].starts_with("CMD8 read"), "{:?}", outcome.log);
    assert!(outcome.stdout.contains("ext_csd unknown"), "{}", outcome.stdout);
    let note = "note EXT_CSD by CMD8: /dev/mmcblk249: Operation not permitted (os error 1); needs CAP_SYS_RAWIO";
    assert!(outcome.stdout.contains(note), "{}", outcome.stdout);
}

fn vendor_health_is_cmd56(shim: &Path) {
    let reply = shim::scratch("cmd56.bin");
    std::fs::write(&reply, [0x44; 512]).unwrap();
    let outcome = run(shim, "vendor", &[("EMMC_SHIM_CMD56", reply.to_str().unwrap())]);
    assert_eq!(
        outcome.log,
        [
            "open /dev/mmcblk249 O_RDONLY",
            "CMD56 read arg=0x00000011 blksz=512 blocks=1 flags=0xb5",
            "CMD56 read arg=0x00000023 blksz=512 blocks=1 flags=0xb5",
        ]
    );
    assert!(outcome.stdout.contains("replies [[44; 512], [44; 512]]"), "{}", outcome.stdout);
    let half = run(shim, "half", &[]);
    assert_eq!(half.log.len(), 3, "{:?}", half.log);
    assert!(half.stdout.contains("1 reply"), "{}", half.stdout);
    let silent = run(shim, "vendor", &[]);
    assert_eq!(silent.log.len(), 2, "a card that does not answer is not asked again: {:?}", silent.log);
    assert!(
        silent.stdout.contains("CMD56 argument 0x00000011: /dev/mmcblk249: Connection timed out"),
        "{}",
        silent.stdout
    );
}

fn a_refused_step_sends_nothing(shim: &Path) {
    let outcome = run(shim, "refused", &[]);
    assert!(outcome.stdout.contains("nothing was sent"), "{}", outcome.stdout);
    assert_eq!(outcome.log, [] as [&str; 0]);
}

fn a_partition_leads_to_its_card(shim: &Path) {
    let outcome = run(shim, "partition", &[]);
    assert_eq!(outcome.log[0], "open /dev/mmcblk249 O_RDONLY");
    assert!(outcome.stdout.contains("note mmcblk249p1 is a part of the card mmcblk249"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("sec_count 61071360"), "{}", outcome.stdout);
}

fn run(shim: &Path, step: &str, more: &[(&str, &str)]) -> Outcome {
    let (ext_csd, log) = (shim::scratch("ext_csd.bin"), shim::scratch("shim.log"));
    let dump = shim::testdata("ext_csd_raw/samsung-bjnb4r-32g/samsung-bjnb4r-32g.ext_csd.hex");
    std::fs::write(&ext_csd, shim::hex_dump(&dump).unwrap()).unwrap();
    std::fs::write(&log, "").unwrap();
    let output = shim::command(shim, std::env::current_exe().unwrap(), &ext_csd, &log)
        .args(["--exact", "live_card::a_live_card_is_only_read", "--nocapture"])
        .env(STEP, step)
        .envs(more.iter().copied())
        .output()
        .unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{stdout}\n{}", String::from_utf8_lossy(&output.stderr));
    let log = std::fs::read_to_string(&log).unwrap();
    Outcome { stdout, log: log.lines().map(str::to_string).collect() }
}

fn under_the_shim(step: &str) {
    let card = LiveCard::new(shim::DEVICE);
    match step {
        "read" => print(&LiveCard::new(shim::DEVICE).read().unwrap()),
        "partition" => print(&LiveCard::new("mmcblk249p1").read().unwrap()),
        "vendor" => match card.read_vendor(&[(56, 0x11, 512), (56, 0x23, 512)]) {
            Ok(replies) => {
                let same = |reply: &Vec<u8>| reply.iter().all(|byte| Some(byte) == reply.first());
                assert!(replies.iter().all(same));
                let shown: Vec<String> =
                    replies.iter().map(|reply| format!("[{:x}; {}]", reply[0], reply.len())).collect();
                println!("replies [{}]", shown.join(", "));
            }
            Err(error) => println!("{error}"),
        },
        // Without a reply to CMD56, only the first command is answered.
        "half" => {
            println!("{} reply", card.read_vendor(&[(8, 0, 512), (56, 0x11, 512), (56, 0x23, 512)]).unwrap().len())
        }
        // The first step alone would be allowed.
        "refused" => println!("{}", card.read_vendor(&[(56, 0x11, 512), (56, 0x10, 512)]).unwrap_err()),
        _ => panic!("no step {step:?}"),
    }
}

fn print(data: &CardData) {
    let origin = &data.origins[0];
    match &data.ext_csd {
        None => println!("ext_csd unknown"),
        Some(ext_csd) => {
            println!("ext_csd {} of 512", ext_csd.known_bytes());
            println!("rev {}\nsec_count {}", ext_csd.byte(192).unwrap(), ext_csd.uint(212, 4).unwrap());
        }
    }
    println!("kind {}", data.kind.map_or("unknown".into(), |kind| kind.to_string()));
    println!("status {:#010x}", data.status.unwrap_or_default());
    println!("taken {}", if origin.taken_at.as_deref().is_some_and(|at| at.ends_with('Z')) { "yes" } else { "no" });
    for note in &origin.notes {
        println!("note {note}");
    }
}
