//! The shipped profiles match the published figures of their parts: each operation, and the capacity.
//!
//! Figures are times of one request in microseconds, from published rates: iozone of a module of the nine cards and of
//! two others (one thread, O_DIRECT, a file of 100 MiB, requests of at most 512 KiB), hdparm and dd of a board vendor,
//! spans of a white paper. Profiles that `twin fit` has made are compared by whole suites (emmc-workload,
//! `published::nine_cards`).

use emmc_card::device::{Area, Device, DeviceOptions, WriteFlags};
use emmc_card::nand::{CellMode, StoredContent};
use emmc_card::profile::{Layout, Partitioning, RegionRole, shipped};
use emmc_units::{Instant, Nanos};

const KIB: u32 = 1 << 10;
const FILE_BYTES: u32 = 100 << 20;
/// Requests of one measurement at most: the burst that a single operation is part of.
const REQUESTS_MAX: u32 = 1600;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Op {
    RandomRead,
    RandomWrite,
    SequentialRead,
    SequentialWrite,
}

use Op::{RandomRead, RandomWrite, SequentialRead, SequentialWrite};

/// What the host did beside its requests.
#[derive(Clone, Copy, Debug)]
struct Host {
    /// Whether it switched the volatile cache on.
    cache: bool,
    /// Its own time between two requests; it is no part of their times.
    gap: Nanos,
}

const DIRECT: Host = Host { cache: false, gap: Nanos::ZERO };
const CACHED: Host = Host { cache: true, gap: Nanos::ZERO };

/// A card with a file in its middle.
struct Bench {
    device: Device,
    now: Instant,
    first_lba: u64,
    gap: Nanos,
}

impl Bench {
    fn new(name: &str, host: Host) -> Self {
        let profile = shipped::named(name).unwrap();
        let device = Device::new(profile, DeviceOptions { keep: StoredContent::Nothing, seed: 1 }).unwrap();
        let first_lba = device.sectors(Area::User) / 2 / 8192 * 8192;
        let mut bench = Self { device, now: Instant::START, first_lba, gap: Nanos::ZERO };
        bench.request(SequentialWrite, 512 * KIB, FILE_BYTES / (512 * KIB));
        bench.rest();
        assert_eq!(bench.device.set_cache(host.cache, bench.now), Ok(true));
        bench.gap = host.gap;
        bench
    }

    /// All data is in flash, and the host waits until the card is idle.
    fn rest(&mut self) {
        self.now = self.device.flush(self.now).unwrap().done;
        while let Some(done) = self.device.background(self.now).unwrap() {
            self.now = done;
        }
    }

    /// The time of the host that measured, which the published figures include.
    fn host_time(&self, op: Op, bytes: u32) -> Nanos {
        let host = self.device.profile().host.unwrap_or_default();
        let micros = if matches!(op, RandomRead | SequentialRead) { host.read_us } else { host.write_us };
        Nanos::from_micros_f64(micros + host.us_per_kib * f64::from(bytes / KIB))
    }

    /// The mean time of `count` requests, one after the other, in microseconds.
    fn request(&mut self, op: Op, bytes: u32, count: u32) -> f64 {
        let (sectors, records) = (bytes / 512, FILE_BYTES / bytes);
        let mut busy = Nanos::ZERO;
        for index in 0..count {
            // 7919 is prime: every record once, none beside the last.
            let record = if matches!(op, RandomRead | RandomWrite) { index * 7919 % records } else { index % records };
            let lba = self.first_lba + u64::from(record) * u64::from(sectors);
            let asked = self.now + self.host_time(op, bytes);
            let done = match op {
                RandomRead | SequentialRead => self.device.read(Area::User, lba, sectors, None, asked),
                RandomWrite | SequentialWrite => {
                    self.device.write(Area::User, lba, sectors, WriteFlags::default(), None, asked)
                }
            };
            let done = done.unwrap().done;
            busy += done.since(self.now);
            self.now = done + self.gap;
        }
        busy.as_micros_f64() / f64::from(count)
    }

    fn measure(&mut self, op: Op, bytes: u32) -> f64 {
        self.rest();
        self.request(op, bytes, REQUESTS_MAX.min(FILE_BYTES / bytes))
    }
}

/// Published time of a request, and the allowed deviation of the profile.
type Published = (Op, u32, f64, f64);

fn compare(name: &str, host: Host, published: &[Published]) {
    let mut bench = Bench::new(name, host);
    let mut wrong = Vec::new();
    for &(op, bytes, micros, tolerance) in published {
        let found = bench.measure(op, bytes);
        let off = found / micros - 1.0;
        println!(
            "{name:28} {op:16?} {:>4} KiB: {found:8.0} us, published {micros:8.0}, {:+5.0} %",
            bytes / KIB,
            off * 100.0
        );
        if off.abs() > tolerance {
            wrong.push(format!("{op:?} {} KiB: {found:.0} us, published {micros:.0}", bytes / KIB));
        }
    }
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

/// A rested card has room in its log, the measured one had not: small writes are compared by the whole suite alone.
#[test]
fn friendlyelec_emmc_8g() {
    compare(
        "friendlyelec-emmc-8g",
        DIRECT,
        &[
            (RandomRead, 4 * KIB, 202.0, 0.1),
            (RandomRead, 16 * KIB, 280.0, 0.15),
            (RandomRead, 128 * KIB, 1147.0, 0.1),
            (SequentialRead, 512 * KIB, 3975.0, 0.1),
            (RandomWrite, 128 * KIB, 3282.0, 0.1),
            (SequentialWrite, 512 * KIB, 11252.0, 0.1),
        ],
    );
}

#[test]
fn modules_are_fast_while_fresh() {
    compare(
        "odroid-64g",
        CACHED,
        &[
            (RandomRead, 4 * KIB, 144.0, 0.1),
            (RandomRead, 16 * KIB, 191.0, 0.15),
            (SequentialRead, 512 * KIB, 1671.0, 0.15),
            (RandomWrite, 4 * KIB, 126.0, 0.1),
            (SequentialWrite, 512 * KIB, 3462.0, 0.15),
        ],
    );
    compare(
        "pine64-64g",
        CACHED,
        &[
            (RandomRead, 4 * KIB, 117.0, 0.1),
            (SequentialRead, 512 * KIB, 1896.0, 0.15),
            (RandomWrite, 4 * KIB, 117.0, 0.1),
            (SequentialWrite, 512 * KIB, 3585.0, 0.15),
        ],
    );
}

#[test]
fn parts_of_the_board_vendor_match_published_speeds() {
    // hdparm reads 79.5 MiB/s in requests of 128 KiB; of the 268 MB that dd wrote in 24.7 s without a sync, 27 stayed
    // in memory.
    compare(
        "colibri-imx6s-4g",
        DIRECT,
        &[(SequentialRead, 128 * KIB, 1572.0, 0.1), (SequentialWrite, 512 * KIB, 53_600.0, 0.1)],
    );
    // dd writes 9.3 MB/s before the user area is enhanced.
    compare("colibri-t30-4g", DIRECT, &[(SequentialWrite, 512 * KIB, 56_400.0, 0.1)]);
}

#[test]
fn hardware_time_matches_the_white_paper() {
    // The host of the random writes took 1.8 ms for itself between two requests.
    let busy = Host { cache: true, gap: Nanos::from_micros(1807) };
    compare(
        "jetson-tx1-8g",
        DIRECT,
        &[(SequentialRead, 128 * KIB, 440.0, 0.15), (SequentialWrite, 128 * KIB, 1360.0, 0.1)],
    );
    compare("zynq-32g", busy, &[(RandomRead, 64 * KIB, 524.0, 0.1), (RandomWrite, 64 * KIB, 259.0, 0.1)]);
}

#[test]
fn enhanced_parts_have_the_published_capacity() {
    for (name, before, after) in
        [("apalis-imx8qm-16g", 31_080_448, 15_384_576), ("colibri-t30-4g", 3_825_205_248 / 512, 1_912_602_624 / 512)]
    {
        let profile = shipped::named(name).unwrap();
        let factory = Layout::factory(&profile, 1).unwrap();
        let enhanced_groups = profile.areas.enhanced_groups_max.into();
        let all = Layout::new(&profile, &Partitioning { enhanced_groups, ..Partitioning::default() }, 1).unwrap();
        assert_eq!((factory.user_sectors, all.user_sectors), (before, after), "{name}");
        assert_eq!(factory.blocks, all.blocks, "{name}");
        assert_eq!(all.region(RegionRole::Enhanced).map(|region| region.mode), Some(CellMode::Pslc), "{name}");
    }
}

#[test]
fn every_shipped_profile_makes_a_working_card() {
    for name in shipped::names().filter(|name| !name.ends_with("128g")) {
        let mut bench = Bench::new(name, DIRECT);
        for op in [RandomWrite, RandomRead] {
            assert!(bench.request(op, 4 * KIB, 20) > 10.0, "{name}: {op:?}");
        }
        bench.device.audit().unwrap_or_else(|what| panic!("{name}: {what}"));
    }
}
