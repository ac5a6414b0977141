//! Figures of a board vendor before and after: pSLC on a Colibri T30, write reliability on a Colibri iMX6S.
//!
//! dd and bonnie++ go through the page cache, as in the source; bonnie++ does not sync at the end of a phase, so the
//! remaining dirty data was not measured. Left out: characters and files per second, which measure the processor (74 to
//! 97 % CPU in the print).

use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::shipped;
use emmc_host::{HostTarget, board};
use emmc_port::{BlockOp, BlockRequest, BlockTarget};
use emmc_sim::SimTarget;
use emmc_units::{Instant, Nanos};
use emmc_workload::{Bench, Options, Outcome, Unwatched, named};

const FILE: u64 = 256 << 20;

/// A card of a profile, with `switches` written to its registers and committed by a power cycle, as U-Boot does.
fn card(name: &str, switches: &[(u8, u8)]) -> SimTarget {
    let profile = shipped::named(name).unwrap();
    let mut card = Card::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
    let mut now = Instant::START;
    let mut send = |card: &mut Card, index: u8, argument: u32| {
        card.handle_command(index, argument, now);
        now = now + Nanos::from_millis(500);
        card.handle_timeout(now);
    };
    let identification = [(0, 0), (1, 0x40ff_8080), (1, 0x40ff_8080), (2, 0), (3, 1 << 16), (7, 1 << 16)];
    identification.into_iter().for_each(|(index, argument)| send(&mut card, index, argument));
    for (index, value) in switches {
        send(&mut card, 6, 0x0300_0000 | u32::from(*index) << 16 | u32::from(*value) << 8);
    }
    card.power_off(now);
    now = card.power_on(now + Nanos::from_secs(1)).unwrap();
    SimTarget::new(card.into_parts().0, name, now, false)
}

fn behind(name: &str, card: SimTarget) -> HostTarget<SimTarget> {
    let mut target = HostTarget::new(card, board(name).unwrap(), false);
    assert!(target.through_page_cache(BlockOp::Write, true));
    target
}

fn one(target: &mut HostTarget<SimTarget>, op: BlockOp, offset_bytes: u64, bytes: u64) {
    target.submit(BlockRequest { op, offset_bytes, bytes, through: false, tag: 0 }).unwrap();
    target.wait().unwrap();
}

/// Seconds that something takes.
fn time(target: &mut HostTarget<SimTarget>, work: impl FnOnce(&mut HostTarget<SimTarget>)) -> f64 {
    let before = target.now();
    work(target);
    target.now().since(before).as_secs_f64()
}

/// `dd bs=4k count=64k`, with `conv=fdatasync` or without. Unit: 10^6 bytes a second.
fn dd(target: &mut HostTarget<SimTarget>, is_synced: bool) -> f64 {
    let seconds = time(target, |target| {
        (0..FILE / 4096).for_each(|block| one(target, BlockOp::Write, block * 4096, 4096));
        if is_synced {
            one(target, BlockOp::Flush, 0, 0);
        }
    });
    FILE as f64 / 1e6 / seconds
}

/// Block output, rewrite and block input in chunks of 8 KiB. Unit: KiB a second.
fn bonnie(target: &mut HostTarget<SimTarget>) -> [f64; 3] {
    // Dirty data of dd is written back while bonnie++ starts; its own file is elsewhere.
    one(target, BlockOp::Flush, 0, 0);
    type Phase = fn(&mut HostTarget<SimTarget>);
    const CHUNKS: u64 = FILE / 8192;
    fn chunk(target: &mut HostTarget<SimTarget>, op: BlockOp, number: u64) {
        one(target, op, FILE + number * 8192, 8192);
    }
    let phases: [Phase; 3] = [
        |target| (0..CHUNKS).for_each(|number| chunk(target, BlockOp::Write, number)),
        |target| {
            for number in 0..CHUNKS {
                chunk(target, BlockOp::Read, number);
                chunk(target, BlockOp::Write, number);
            }
        },
        |target| (0..CHUNKS).for_each(|number| chunk(target, BlockOp::Read, number)),
    ];
    phases.map(|phase| FILE as f64 / 1024.0 / time(target, phase))
}

fn compare(what: &str, simulated: f64, published: f64, percent: f64) {
    let error = (simulated / published - 1.0) * 100.0;
    println!("{what:<40} {simulated:>9.1} published {published:>9.1} {error:>+6.1} %");
    assert!(error.abs() <= percent, "{what}: {simulated} against {published}");
}

#[test]
fn enhanced_flash_doubles_a_t30s_writes_and_halves_its_capacity() {
    let groups = shipped::named("colibri-t30-4g").unwrap().areas.enhanced_groups_max.to_le_bytes();
    let enhance = [(175, 1), (140, groups[0]), (141, groups[1]), (142, groups[2]), (156, 1), (155, 1)];
    let runs = [
        (&[][..], 3_825_205_248, 9.3, [12_856.0, 9_825.0, 395_316.0]),
        (&enhance[..], 1_912_602_624, 19.7, [25_778.0, 19_970.0, f64::NAN]),
    ];
    for (switches, bytes, dd_published, bonnie_published) in runs {
        let mut target = behind("colibri-t30", card("colibri-t30-4g", switches));
        assert_eq!(target.shape().size_bytes, bytes);
        compare("dd, MB/s", dd(&mut target, true), dd_published, 10.0);
        let found = bonnie(&mut target);
        compare("bonnie++ block out, KiB/s", found[0], bonnie_published[0], 10.0);
        compare("bonnie++ rewrite, KiB/s", found[1], bonnie_published[1], 10.0);
        // Block input came from memory: +++++ after, and faster than the bus before.
        if bonnie_published[2].is_finite() {
            compare("bonnie++ block in, KiB/s", found[2], bonnie_published[2], 10.0);
        }
        assert!(found[2] > 104_000.0, "{found:?}");
    }
}

#[test]
fn write_reliability_of_an_imx6s_makes_no_difference_to_large_writes() {
    let runs =
        [(0x1f, 79.52, 24.712, [10_722.0, 8_770.0, 80_853.0]), (0x1e, 78.69, 25.122, [10_348.0, 8_541.0, 80_592.0])];
    for (wr_rel_set, hdparm, dd_s, bonnie_published) in runs {
        let card = card("colibri-imx6s-4g", &[(167, wr_rel_set), (155, 1)]);
        assert_eq!(card.device().registers().ext_csd[167], wr_rel_set);
        let mut target = behind("colibri-imx6s", card);
        compare("dd, MB/s", dd(&mut target, false), FILE as f64 / 1e6 / dd_s, 10.0);
        let found = bonnie(&mut target);
        for (name, (found, published)) in
            ["block out", "rewrite", "block in"].into_iter().zip(found.into_iter().zip(bonnie_published))
        {
            compare(&format!("bonnie++ {name}, KiB/s"), found, published, 10.0);
        }
        // hdparm drops the cache, reads from the beginning for three seconds, and writes MB for MiB.
        let mut target = behind("colibri-imx6s", target.into_card());
        let megabytes = 240;
        let seconds = time(&mut target, |target| {
            (0..megabytes / 2).for_each(|piece| one(target, BlockOp::Read, piece << 21, 2 << 20));
        });
        compare("hdparm -t, MiB/s", megabytes as f64 / seconds, hdparm, 10.0);
    }
}

/// The same by the suites, as `bench sim:PROFILE --host BOARD` runs them.
#[test]
fn suites_find_the_difference_behind_the_boards() {
    let behind = |profile: &str, name: &str| HostTarget::new(card(profile, &[]), board(name).unwrap(), false);
    let told = |suite: &str, target: &mut dyn BlockTarget, rows: &[&str]| {
        let rows = rows.iter().map(|row| row.to_string()).collect();
        let options = Options { size_bytes: Some(FILE), rows, ..Options::default() };
        Bench::run(named(suite).unwrap(), target, &options, &mut Unwatched).unwrap()
    };
    let speed = |outcome: &Outcome, row: &str, column: &str| {
        let found = outcome.measurements.iter().find(|found| found.row == row && found.column == column);
        found.unwrap_or_else(|| panic!("{row} {column}")).mb_per_s
    };
    let t30 = told("dd", &mut behind("colibri-t30-4g", "colibri-t30"), &["4"]);
    compare("colibri-t30: dd conv=fdatasync, MB/s", speed(&t30, "4", "conv=fdatasync"), 9.3, 10.0);
    let mut imx6s = behind("colibri-imx6s-4g", "colibri-imx6s");
    let dd = told("dd", &mut imx6s, &["4"]);
    compare("colibri-imx6s: dd, MB/s", speed(&dd, "4", "plain"), FILE as f64 / 1e6 / 24.712, 10.0);
    assert!(speed(&dd, "4", "conv=fdatasync") < 0.95 * speed(&dd, "4", "plain"), "what is left in memory counts");
    for (profile, name, published) in [
        ("colibri-t30-4g", "colibri-t30", [12_856.0, 9_825.0, 395_316.0]),
        ("colibri-imx6s-4g", "colibri-imx6s", [10_722.0, 8_770.0, 80_853.0]),
    ] {
        let bonnie = told("bonnie", &mut behind(profile, name), &[]);
        for (column, published) in ["block out", "rewrite", "block in"].into_iter().zip(published) {
            let found = bonnie.grids[0].value("256M", column).unwrap();
            compare(&format!("{name}: bonnie++ {column}, KiB/s"), found, published, 10.0);
        }
    }
    let hdparm = told("hdparm", &mut imx6s, &[]);
    compare("colibri-imx6s: hdparm -t, MiB/s", speed(&hdparm, "buffered", "read") * 1e6 / 1_048_576.0, 79.52, 10.0);
}
