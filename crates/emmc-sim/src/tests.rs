use super::*;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;

fn target(profile: &str, queueing: bool) -> SimTarget {
    let profile = shipped::named(profile).unwrap();
    let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    SimTarget::new(device, "sim:test", Instant::START, queueing)
}

fn request(op: BlockOp, offset_bytes: u64, bytes: u64, tag: u64) -> BlockRequest {
    BlockRequest { op, offset_bytes, bytes, through: false, tag }
}

/// Reads 64 blocks, `depth` at a time; returns the duration.
fn reads(target: &mut SimTarget, depth: u64) -> Nanos {
    let began = target.now();
    for tag in 0..64 {
        if tag >= depth {
            target.wait().unwrap();
        }
        target.submit(request(BlockOp::Read, tag * (1 << 20), 4096, tag)).unwrap();
    }
    while target.wait().is_ok() {}
    target.now().since(began)
}

#[test]
fn a_queue_runs_dies_in_parallel() {
    let [queued, one_by_one] = [true, false].map(|queueing| {
        let mut target = target("odroid-64g", queueing);
        for tag in 0..64 {
            target.submit(request(BlockOp::Write, tag * (1 << 20), 4096, tag)).unwrap();
            target.wait().unwrap();
        }
        target.submit(request(BlockOp::Flush, 0, 0, 0)).unwrap();
        target.wait().unwrap();
        (reads(&mut target, 1), reads(&mut target, 16))
    });
    // Flash times vary by some percent; without a queue that is the only difference.
    let alike = |left: Nanos, right: Nanos| (left.0 as f64 / right.0 as f64 - 1.0).abs() < 0.02;
    assert!(alike(one_by_one.1, one_by_one.0), "{one_by_one:?}");
    // Two commands more, and the wait for the next poll. Source: 15 to 21 us of a kernel on this card's queue engine.
    let costs_us = (queued.0 - one_by_one.0).as_micros_f64() / 64.0;
    assert!((10.0..25.0).contains(&costs_us), "{costs_us} us a read");
    assert!(queued.1.0 * 3 < queued.0.0 * 2, "{} against {}", queued.1, queued.0);
}

/// Pages of four dies: those of a free die come before an earlier one whose die is busy.
#[test]
fn ready_tasks_overtake_those_that_wait_for_flash() {
    let run = |queueing: bool| {
        let mut target = target("pine64-64g", queueing);
        for at in 0..64 {
            target.complete(request(BlockOp::Write, at << 20, 4096, 0)).unwrap();
        }
        target.complete(request(BlockOp::Flush, 0, 0, 0)).unwrap();
        let mut rng = emmc_units::Rng::new(7);
        let mut ended: Vec<BlockDone> = Vec::new();
        for tag in 0..500 {
            if tag >= 8 {
                ended.push(target.wait().unwrap());
            }
            target.submit(request(BlockOp::Read, rng.below(64) << 20, 4096, tag)).unwrap();
        }
        ended.extend(std::iter::from_fn(|| target.wait().ok()));
        assert!(ended.iter().all(|done| done.done > done.submitted) && ended.is_sorted_by_key(|done| done.done));
        let mut tags: Vec<u64> = ended.iter().map(|done| done.request.tag).collect();
        let overtakes = !tags.is_sorted();
        tags.sort_unstable();
        assert!(tags.into_iter().eq(0..500), "each request ends once");
        (overtakes, target.now())
    };
    let ((overtakes, queued), (overtakes_alone, alone)) = (run(true), run(false));
    assert!(overtakes && !overtakes_alone && queued < alone, "{overtakes} {queued:?}, {overtakes_alone} {alone:?}");
}

/// More requests than the card has slots: those that wait in the host are handed over as others end.
#[test]
fn a_full_queue_takes_the_next_as_a_slot_becomes_free() {
    let mut target = target("generic-8g", true);
    for tag in 0..40 {
        target.submit(request(BlockOp::Read, tag * 4096, 4096, tag)).unwrap();
    }
    target.submit(request(BlockOp::Flush, 0, 0, 40)).unwrap();
    let mut ends: Vec<(Instant, u64)> = Vec::new();
    while let Ok(done) = target.wait() {
        ends.push((done.done, done.request.tag));
    }
    assert_eq!(ends.len(), 41);
    assert!(ends.is_sorted_by_key(|(at, _)| *at));
    assert_eq!(ends.last().unwrap().1, 40, "a flush waits for what was handed over before it: {ends:?}");
}

/// 4 KiB in a row, 32 at a time, for 16 slots: those that wait become one command, for which a command's costs come
/// once. Random ones, those in a row that find a slot, and those of a card without a queue stay alone.
#[test]
fn requests_that_wait_side_by_side_become_one_command() {
    for (queueing, op) in [(true, BlockOp::Read), (true, BlockOp::Write), (false, BlockOp::Read)] {
        let run = |depth: u64, step: u64| {
            let mut target = target("odroid-64g", queueing);
            for at in 0..256 {
                target.complete(request(BlockOp::Write, at << 16, 64 << 10, 0)).unwrap();
            }
            target.complete(request(BlockOp::Flush, 0, 0, 0)).unwrap();
            let began = target.now();
            let mut ended = Vec::new();
            for tag in 0..512 {
                if tag >= depth {
                    ended.push(target.wait().unwrap());
                }
                target.submit(request(op, tag * step % 512 * 4096, 4096, tag)).unwrap();
            }
            ended.extend(std::iter::from_fn(|| target.wait().ok()));
            assert!(ended.iter().all(|done| (done.request.bytes, done.error.is_none()) == (4096, true)));
            let mut tags: Vec<u64> = ended.iter().map(|done| done.request.tag).collect();
            tags.sort_unstable();
            assert!(tags.into_iter().eq(0..512), "each request ends once");
            target.now().since(began).0
        };
        let [in_a_row, with_slots, apart] = [run(32, 1), run(16, 1), run(32, 263)];
        if queueing {
            assert!(in_a_row * 3 < with_slots * 2, "{op:?}: {in_a_row} against {with_slots}");
            assert!(in_a_row * 3 < apart * 2, "{op:?}: {in_a_row} against {apart}");
        } else {
            assert_eq!(in_a_row, with_slots);
        }
    }
}

#[test]
fn a_present_cache_is_enabled_also_in_the_registers() {
    for (name, has_cache) in [("odroid-64g", true), ("friendlyelec-emmc-8g", false)] {
        let target = target(name, true);
        assert_eq!(
            target.device().registers().ext_csd[emmc_regs::ext_csd::reg::CACHE_CTRL],
            u8::from(has_cache),
            "{name}"
        );
    }
}

#[test]
fn a_large_request_is_split_as_linux_splits_it() {
    let mut target = target("generic-8g", true);
    let mut took = |bytes: u64| {
        let before = target.now();
        for at in (0..4u64 << 20).step_by(bytes as usize) {
            target.submit(request(BlockOp::Read, at, bytes, 0)).unwrap();
            target.wait().unwrap();
        }
        target.now().since(before)
    };
    assert_eq!(took(4 << 20), took(512 << 10));
}

/// A host with larger commands saves what each costs.
#[test]
fn a_larger_command_is_one() {
    let took = |command_bytes: u64| {
        let mut target = target("generic-8g", false).with_commands_of(command_bytes);
        target.submit(request(BlockOp::Read, 0, 4 << 20, 0)).unwrap();
        let done = target.wait().unwrap();
        (done.latency(), target.device().profile().controller.read_overhead_us)
    };
    let (halves, overhead_us) = took(512 << 10);
    let saved = Nanos(halves.0 - took(1 << 20).0.0);
    // Four commands of eight, each with the firmware's time and its own on the bus.
    assert!(saved >= Nanos::from_micros_f64(4.0 * overhead_us), "{saved}");
    assert!(saved < Nanos::from_micros_f64(4.0 * (overhead_us + 100.0)), "{saved}");
}

/// Counted unit by unit, over layers with a map, with a log before it, and with segments.
#[test]
fn the_mapped_share_is_exact() {
    for name in ["generic-8g", "jetson-tx1-8g", "toshiba-7au"] {
        let mut target = target(name, false);
        let empty = target.fill().unwrap();
        assert_eq!((empty.holds_share, empty.erased_share), (0.0, 0.0), "{name}");
        let mut work = |op, from_mib: u64, mib: u64| {
            for at in from_mib * 4..(from_mib + mib) * 4 {
                target.submit(request(op, at * (256 << 10), 256 << 10, at)).unwrap();
                target.wait().unwrap();
            }
            target.submit(request(BlockOp::Flush, 0, 0, 0)).unwrap();
            target.wait().unwrap();
        };
        work(BlockOp::Write, 8, 64);
        work(BlockOp::Write, 16, 8);
        work(BlockOp::Trim, 20, 16);
        let sectors = target.device.sectors(Area::User);
        let held = (0..sectors).step_by(8).filter(|lba| target.device.is_mapped(Area::User, *lba)).count();
        let counted = target.fill().unwrap().holds_share * (sectors / 8) as f64;
        assert!(held > 0 && (counted - held as f64).abs() < 0.5, "{name}: {counted} of {held}");
    }
}

#[test]
fn invalid_requests_are_refused() {
    let mut target = target("generic-8g", true);
    let size = target.shape().size_bytes;
    assert!(matches!(target.submit(request(BlockOp::Read, size, 512, 0)), Err(TargetError::Request { .. })));
    assert!(matches!(target.wait(), Err(TargetError::Failed { .. })));
    let before = target.now();
    target.idle(Nanos::from_secs(3)).unwrap();
    assert_eq!(target.now(), before + Nanos::from_secs(3));
}
