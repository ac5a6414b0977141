//! Mechanisms of the data path, each switched on in a profile that has none of them: what it costs and what it saves.

use emmc_card::device::{Area, Device, DeviceOptions, WriteFlags};
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Profile, shipped};
use emmc_units::{Instant, Nanos};

const KIB: u32 = 2;

/// A card of one die without spread of times, filled with 32 MiB and idle.
struct Part {
    device: Device,
    now: Instant,
}

fn part(name: &str, change: impl FnOnce(&mut Profile)) -> Part {
    let mut profile = shipped::named(name).unwrap();
    profile.nand.native.time_spread = 0.0;
    change(&mut profile);
    let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    let mut part = Part { device, now: Instant::START };
    for block in 0..64 {
        part.write(block * 1024, 512 * KIB);
    }
    part.rest();
    part
}

impl Part {
    fn rest(&mut self) {
        self.now = self.device.flush(self.now).unwrap().done;
        while let Some(done) = self.device.background(self.now).unwrap() {
            self.now = done;
        }
        self.now = self.now + Nanos::from_secs(1);
    }

    fn write(&mut self, lba: u64, sectors: u32) -> f64 {
        let done = self.device.write(Area::User, lba, sectors, WriteFlags::default(), None, self.now).unwrap().done;
        self.took(done)
    }

    fn read(&mut self, lba: u64, sectors: u32) -> f64 {
        let done = self.device.read(Area::User, lba, sectors, None, self.now).unwrap().done;
        self.took(done)
    }

    fn took(&mut self, done: Instant) -> f64 {
        let took = done.since(self.now).as_micros_f64();
        self.now = done;
        took
    }

    fn merges(&self) -> u64 {
        self.device.stats().full_merges
    }

    fn programmed(&self) -> u64 {
        self.device.nand().counters().unit_programs
    }
}

#[test]
fn neighbours_in_a_page_cost_one_sense() {
    let mut part = part("generic-8g", |_| ());
    let sense = part.device.profile().nand.native.read_us;
    let [first, second, elsewhere] = [0, 8, 20_000].map(|lba| part.read(lba, 4 * KIB));
    assert!((first - second - sense).abs() < 1.0, "{first} {second}");
    assert!((first - elsewhere).abs() < 1.0, "{first} {elsewhere}");
}

#[test]
fn firmware_time_bounds_reads_at_any_depth() {
    let mut part = part("odroid-64g", |profile| profile.controller.read_overhead_us = 500.0);
    let asked = part.now;
    for index in 0..200 {
        let done = part.device.read(Area::User, index * 7919 % 8000 * 8, 4 * KIB, None, asked).unwrap().done;
        part.now = part.now.max(done);
    }
    let took = part.now.since(asked).as_micros_f64() / 200.0;
    assert!((500.0..520.0).contains(&took), "{took} us a read");
}

#[test]
fn firmware_times_vary_evenly() {
    let mut part = part("generic-8g", |profile| profile.controller.time_spread = 0.5);
    let times: Vec<f64> = (0..2000).map(|at| part.read(at * 7919 % 8000 * 8, 4 * KIB)).collect();
    let mean = times.iter().sum::<f64>() / 2000.0;
    let [half, all] = [15.0, 31.5].map(|us| times.iter().filter(|time| (**time - mean).abs() > us).count());
    assert!((800..1200).contains(&half) && all == 0, "{half} {all}");
}

#[test]
fn a_random_read_waits_for_a_read_ahead_that_it_does_not_use() {
    let [plain, ahead] = [false, true].map(|always| {
        let mut part = part("generic-8g", |profile| {
            (profile.controller.read_ahead_bytes, profile.controller.read_ahead_always) = (32 << 10, always);
        });
        [2 * KIB, 4 * KIB].map(|sectors| (0..50).map(|at| part.read(at * 7919 % 8000 * 8, sectors)).sum::<f64>() / 50.0)
    });
    assert!((ahead[0] - plain[0]).abs() < 1.0, "2 KiB start none: {plain:?} {ahead:?}");
    assert!(ahead[1] > plain[1] + 50.0, "4 KiB: {plain:?} {ahead:?}");
}

#[test]
fn the_border_of_two_map_spans_shows() {
    let mut part = part("generic-8g", |profile| {
        let controller = &mut profile.controller;
        (controller.map_load_us, controller.map_span_bytes, controller.map_spans) = (150.0, 4 << 20, 1);
    });
    // Units of 8 blocks around the border at 8192; a read elsewhere comes between.
    let mut measure = |lba| {
        part.read(40_000, 4 * KIB);
        part.read(lba, 4 * KIB)
    };
    let [within, across] = [8192 - 16, 8192 - 4].map(&mut measure);
    assert!(across > within + 149.0, "{within} {across}");
}

#[test]
fn a_read_pays_for_what_it_leaves_of_its_units() {
    let times = |us_per_kib| {
        let mut part = part("generic-8g", |profile| profile.controller.read_missing_us_per_kib = us_per_kib);
        // A whole unit of 4 KiB, 1 KiB of one, and 1 KiB on each side of a border; a read elsewhere comes between.
        [(8192, 4 * KIB), (8192, KIB), (8192 + 6, 2 * KIB)].map(|(lba, bytes)| {
            part.read(40_000, 4 * KIB);
            part.read(lba, bytes)
        })
    };
    let (free, paid) = (times(0.0), times(20.0));
    let added = [0, 1, 2].map(|index| paid[index] - free[index]);
    for (added, expected) in added.into_iter().zip([0.0, 60.0, 120.0]) {
        assert!((added - expected).abs() < 1.0, "{added} {expected}");
    }
}

#[test]
fn a_write_that_keeps_a_part_of_a_unit_waits_for_the_map() {
    let added = |commit_us: f64| {
        let mut part = part("sandisk-extreme-a1-32g", |profile| {
            let controller = &mut profile.controller;
            (controller.commit_us, controller.missing_us_per_kib) = (commit_us, 100.0);
        });
        let [halves, whole] = [2, 4].map(|kib| {
            let took: f64 = (0..2000).map(|index| part.write(8192 + index * u64::from(kib * KIB), kib * KIB)).sum();
            part.rest();
            took / 2000.0
        });
        halves - whole
    };
    // The commit is longer than the firmware's time and hides that; not what a part of a unit costs.
    for commit_us in [2000.0, 3000.0] {
        assert!((150.0..260.0).contains(&added(commit_us)), "{commit_us}: {}", added(commit_us));
    }
}

#[test]
fn another_stream_completes_the_merge_unit_of_the_last() {
    let written = |each_write: bool| {
        let mut part = part("sandisk-extreme-a1-32g", |profile| {
            let controller = &mut profile.controller;
            (controller.merge_bytes, controller.small_write_bytes) = (256 << 10, 4096);
            (controller.merge_each_write, controller.commit_us) = (each_write, 0.0);
        });
        [128, 7 * 1024].map(|step| {
            let before = part.programmed();
            let took: f64 = (0..16).map(|index| part.write(index * step % 60_000, 64 * KIB)).sum();
            part.rest();
            (took / 16.0, (part.programmed() - before) * 4)
        })
    };
    let [in_order, random] = written(false);
    // 16 writes of 64 KiB are 1 MiB; each at random is a unit of 256 KiB but the last, which stays open.
    assert!(in_order.1 <= 1024, "{in_order:?}");
    assert!((3 * 1024..=4 * 1024).contains(&random.1), "{random:?}");
    assert!(random.0 > 2.0 * in_order.0, "{in_order:?} {random:?}");
    // With a unit for each write, those in order cost as much.
    let [in_order, random] = written(true);
    assert!(in_order.1.abs_diff(random.1) <= 256, "{in_order:?} {random:?}");
    assert!((0.9..1.1).contains(&(in_order.0 / random.0)), "{in_order:?} {random:?}");
}

/// Less than a page, a page, one across a border, and less than a page where there is no content.
#[test]
fn a_small_write_reads_the_rest_of_a_page_of_the_log_and_writes_it_again() {
    let costs = |page_bytes| {
        let mut part = part("sandisk-extreme-plus-16g", |profile| {
            (profile.controller.small_page_bytes, profile.controller.read_overhead_us) = (page_bytes, 300.0);
            // What is folded later is not counted here.
            profile.ftl.slc_cache.as_mut().unwrap().idle_fold = false;
        });
        [(8192, 4), (16_384, 16), (24_576 + 16, 16), (200_000, 4)].map(|(lba, kib)| {
            part.rest();
            let (before, host) = (part.programmed(), part.device.stats().host_units);
            let took = part.write(lba, kib * KIB);
            part.rest();
            let host = part.device.stats().host_units - host;
            assert_eq!(host, u64::from(kib / 4), "units that the host wrote");
            (took, (part.programmed() - before) * 4)
        })
    };
    let (units, pages) = (costs(0), costs(16 << 10));
    // The firmware, and the flash: a sense and a transfer.
    for (index, reads) in [1.0, 0.0, 2.0, 0.0].into_iter().enumerate() {
        let added = pages[index].0 - units[index].0;
        assert!((reads * 300.0..=reads * 300.0 + 200.0 + 1e-6).contains(&added), "{index}: {added}");
    }
    // Without the rest, a single unit is padded to a page of 8 KiB.
    let again = [0, 1, 2, 3].map(|index: usize| pages[index].1 - units[index].1);
    assert_eq!(again, [8, 0, 16, 0], "{units:?} {pages:?}");
}

#[test]
fn data_elsewhere_waits_for_the_map_of_the_last_stream() {
    let waited = |commit_us: f64| {
        let mut part = part("sandisk-extreme-a1-32g", |profile| {
            let controller = &mut profile.controller;
            (controller.merge_bytes, controller.merge_each_write) = (0, false);
            (controller.small_write_bytes, controller.commit_us) = (4096, commit_us);
        });
        let [in_order, random] = [128, 7 * 1024].map(|step| {
            let took: f64 = (0..16).map(|index| part.write(index * step % 60_000, 64 * KIB)).sum();
            part.rest();
            took / 16.0
        });
        random - in_order
    };
    // In order the map is programmed while the next 64 KiB come; elsewhere they come after it.
    let (free, paid) = (waited(0.0), waited(1500.0));
    assert!(free.abs() < 20.0, "{free}");
    assert!((500.0..1500.0).contains(&paid), "{paid}");
}

/// 256 KiB in a log of 64 KiB: whatever the size of a write, four of them wait for a merge of 256 KiB.
#[test]
fn small_writes_that_fill_a_log_of_sectors_complete_a_unit() {
    let written = |log_bytes: u32, kib: u32| {
        let mut part = part("sandisk-extreme-a1-32g", |profile| {
            let controller = &mut profile.controller;
            (controller.merge_bytes, controller.small_write_bytes) = (256 << 10, 4096);
            controller.small_log_bytes = log_bytes;
        });
        let before = part.programmed();
        let times: Vec<f64> =
            (0..256 / kib).map(|index| part.write((index * 7919 % 4096 * 8).into(), kib * KIB)).collect();
        let slow = times.iter().filter(|us| **us > 3000.0).count();
        (slow, (part.programmed() - before) * 4)
    };
    let (none, copied) = (written(0, 1), [1, 2, 4].map(|kib| written(64 << 10, kib)));
    assert_eq!(none.0, 0, "{none:?}");
    for (kib, copied) in [1, 2, 4].into_iter().zip(copied) {
        assert_eq!(copied.0, 4, "{kib} KiB: {copied:?}");
        // A unit less the page of the write itself.
        assert!((3 * 252..=5 * 256).contains(&(copied.1 - written(0, kib).1)), "{kib} KiB: {copied:?}");
    }
}

#[test]
fn a_write_buffer_answers_before_the_program_and_is_lost_with_power() {
    let answer = |buffer_bytes: u32| {
        let mut part = part("sandisk-extreme-a1-32g", |profile| {
            let controller = &mut profile.controller;
            (controller.write_buffer_bytes, controller.commit_us) = (buffer_bytes, 0.0);
        });
        let took = part.write(0, 64 * KIB);
        let flushed = part.device.flush(part.now).unwrap().done.since(part.now).as_micros_f64();
        (took, flushed)
    };
    let (buffered, direct) = (answer(64 << 10), answer(0));
    assert!(buffered.0 + 200.0 < direct.0, "{buffered:?} {direct:?}");
    assert!(buffered.1 > 200.0, "the flush waits for the programs: {buffered:?} {direct:?}");

    let profile = shipped::named("sandisk-extreme-a1-32g").unwrap();
    let mut device = Device::new(profile, DeviceOptions { keep: StoredContent::Data, seed: 1 }).unwrap();
    let data = [7; 4096];
    let done = device.write(Area::User, 0, 8, WriteFlags::default(), Some(&data), Instant::START).unwrap().done;
    device.power_off(done);
    let now = device.power_on(done + Nanos::from_secs(1)).unwrap();
    let mut found = [1; 4096];
    device.read(Area::User, 0, 8, Some(&mut found), now).unwrap();
    assert_eq!(found, [0; 4096]);
}

#[test]
fn the_next_stream_pays_for_what_small_writes_have_left_in_the_log() {
    let streamed = |percent| {
        let mut part = part("sandisk-extreme-plus-16g", |profile| {
            profile.ftl.slc_cache.as_mut().unwrap().stream_fold_percent = percent;
            profile.controller.copies_alone = false;
        });
        // Three blocks of the log, beside the place of the stream.
        for index in 0..1600 {
            part.write(32_768 + index * 7919 % 4096 * 8, 4 * KIB);
        }
        let mut pass = || (0..32).map(|index| part.write(index * 1024, 512 * KIB)).sum::<f64>();
        [pass(), pass()]
    };
    let (free, paid) = (streamed(0), streamed(30));
    assert!(free[0] < free[1] * 1.02 && free[0] < paid[0] / 1.05, "{free:?} {paid:?}");
    assert!(paid[1] < paid[0] * 0.97, "it is paid once: {paid:?}");
}

#[test]
fn planes_program_the_log_together_after_a_padded_page_too() {
    let streamed = |pads: bool| {
        let mut part = part("generic-32g", |_| ());
        part.device.set_cache(true, part.now).unwrap();
        if pads {
            // One page of the two of a row.
            part.write(0, 4 * KIB);
            part.now = part.device.flush(part.now).unwrap().done;
        }
        let start = part.now;
        for index in 0..64 {
            part.write(index * 1024, 512 * KIB);
        }
        part.device.flush(part.now).unwrap().done.since(start).as_micros_f64()
    };
    let [whole, padded] = [false, true].map(streamed);
    // One plane alone would take twice as long.
    assert!((padded / whole - 1.0).abs() < 0.03, "{whole} {padded}");
}

#[test]
fn copies_that_are_not_hidden_hold_up_the_next_command() {
    let random = |alone| {
        let mut part = part("sandisk-extreme-plus-16g", |profile| {
            profile.ftl.slc_cache.as_mut().unwrap().blocks = 8;
            profile.controller.copies_alone = alone;
        });
        let mut write = |count| (0..count).map(|index| part.write(index * 7919 % 4096 * 8, 16 * KIB)).sum::<f64>();
        write(1000);
        write(500) / 500.0
    };
    let (hidden, alone) = (random(false), random(true));
    assert!(alone > hidden + 30.0, "{hidden} {alone}");
}

#[test]
fn steps_back_cost_a_share_of_a_merge() {
    let filled = |steps_back, back: bool| {
        let mut part = part("sandisk-ultra-8g", |profile| {
            profile.ftl.segment.as_mut().unwrap().steps_back = steps_back;
        });
        let merges = part.merges();
        let took: f64 = (0..100)
            .map(|block| part.write(block * 8, 4 * KIB) + if back { part.write(block * 8 + 4, 2 * KIB) } else { 0.0 })
            .sum();
        (took / 100.0, part.merges() - merges)
    };
    let (any, some, none) = (filled(0, true), filled(20, true), filled(20, false));
    assert!(some.0 > any.0 + 4000.0 && some.1 >= any.1 + 4, "{any:?} {some:?}");
    assert!(none.0 < any.0, "writes one after another are no steps back: {none:?} {any:?}");
}

/// A request at a time on a card that keeps nothing, and on one that keeps sequence numbers or bytes: they take
/// different ways through the code, single units in one call and pages of a stripe together, or not.
#[test]
fn times_do_not_depend_on_what_the_flash_keeps() {
    let plain = ["generic-8g", "sandisk-extreme-a1-32g", "friendlyelec-emmc-8g"].map(|name| {
        let plain = run_of(name, StoredContent::Nothing);
        assert_eq!(plain, run_of(name, StoredContent::Orders), "{name}");
        plain
    });
    assert_eq!(plain[0], run_of("generic-8g", StoredContent::Data));
}

/// The sum of all latencies, the end, and the programs and reads of the flash.
fn run_of(name: &str, keep: StoredContent) -> (u64, Instant, u64, u64) {
    let mut profile = shipped::named(name).unwrap();
    profile.areas.user_bytes = 128 << 20;
    (profile.nand.pages_per_block, profile.nand.over_provisioning) = (64, 0.2);
    profile.areas.enhanced_groups_max = 0;
    let keeps_data = keep == StoredContent::Data;
    let mut device = Device::new(profile, DeviceOptions { keep, seed: 1 }).unwrap();
    device.set_cache(true, Instant::START).unwrap();
    let (mut rng, mut now, mut sum) = (emmc_units::Rng::new(7), Instant::START, 0);
    let all = device.sectors(Area::User);
    for step in 0..60_000u64 {
        let sectors = match rng.below(16) {
            0 => 1 + rng.below(40) as u32,
            1 => 128,
            _ => 8,
        };
        let lba = rng.below((all - 128) / 8) * 8 + u64::from(sectors < 8);
        let flags = WriteFlags { reliable: rng.below(200) == 0, force: rng.below(100) == 0 };
        let mut bytes = keeps_data.then(|| vec![step as u8; sectors as usize * 512]);
        let done = match rng.below(40) {
            0 => device.read(Area::User, lba, sectors, bytes.as_deref_mut(), now),
            1 => device.flush(now),
            _ => device.write(Area::User, lba, sectors, flags, bytes.as_deref(), now),
        };
        let done = done.unwrap();
        sum += done.latency(now).0;
        now = done.done;
    }
    let counters = device.nand().counters();
    (sum, now, counters.unit_programs, counters.page_reads)
}
