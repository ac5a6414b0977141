#![no_main]
//! A whole folder of a card whose state or journal is changed at some places, or is anything: refused, or a card.

use std::path::Path;
use std::sync::LazyLock;

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_serve::store::{Purpose, Store, check};
use emmc_units::Instant;
use libfuzzer_sys::fuzz_target;

/// A small card's files: state and journal of a server that was killed.
static FILES: LazyLock<[Vec<u8>; 2]> = LazyLock::new(|| {
    let text = shipped::text("generic-8g").expect("it is shipped");
    let text = text
        .replace("user_bytes = 7818182656", "user_bytes = 67108864")
        .replace("pages_per_block = 256", "pages_per_block = 32")
        .replace("enhanced_groups_max = 466", "enhanced_groups_max = 0");
    let options = DeviceOptions { keep: StoredContent::Orders, seed: 1 };
    let card = Card::new(Profile::from_toml(&text).expect("a profile"), options).expect("a card");
    let folder = folder();
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder");
    Store::create(&folder, &text, &card, Instant::START).expect("a card's folder");
    let (mut store, mut card, off) = Store::open(&folder, Purpose::Serve).expect("the card");
    let mut now = card.power_on(off).expect("power");
    store.begin(&mut card, now).expect("a journal");
    for unit in 0..20 {
        let area = emmc_card::device::Area::User;
        let written = card.device_mut().write(area, unit * 8, 8, Default::default(), Some(&[7; 4096]), now);
        now = written.expect("a write").done;
        store.commit(&mut card, true, now).expect("a record");
    }
    ["card.state", "card.journal"].map(|file| std::fs::read(folder.join(file)).expect("a file"))
});

fn folder() -> std::path::PathBuf {
    Path::new("/dev/shm").join(format!("emmclab-fuzz-{}", std::process::id()))
}

fuzz_target!(|data: (bool, Option<Vec<(u16, u8)>>, &[u8])| {
    let (of_journal, edits, anything) = data;
    let whole = &FILES[usize::from(of_journal)];
    let name = ["card.state", "card.journal"][usize::from(of_journal)];
    let bytes = match edits {
        None => anything.to_vec(),
        Some(edits) => {
            let mut bytes = whole.clone();
            for (at, value) in edits {
                let at = usize::from(at) % bytes.len();
                bytes[at] ^= value;
            }
            bytes
        }
    };
    let is_same = bytes == *whole;
    let folder = folder();
    std::fs::write(folder.join(name), bytes).expect("a file");
    assert_eq!(Store::look(&folder).is_ok(), is_same, "{name}");
    drop(check(&folder));
    std::fs::write(folder.join(name), whole).expect("a file");
});
