//! `iozone -e -I -a -s 100M -i 0 -i 1 -i 2`: a file written sequentially, then each record once at random.

use emmc_units::Rng;

use super::host::Host;

const KIB: u64 = 1 << 10;
const FILE: u64 = 100 << 20;
/// The place of the file: anywhere, aligned to AUs.
const OFFSET: u64 = 256 << 20;

/// KiB/s: sequential rewrite, random read, random write. The random part of small records is cut short.
fn iozone(profile: &str, record_kib: u64) -> [f64; 3] {
    let mut host = Host::new(profile);
    host.fill(OFFSET, FILE);
    let record = record_kib * KIB;
    let rate = |host: &Host, start, bytes: u64| bytes as f64 / 1024.0 / host.now.since(start).as_secs_f64();
    let start = host.now;
    (OFFSET..OFFSET + FILE).step_by(record as usize).for_each(|at| host.write(at, record));
    let rewrite = rate(&host, start, FILE);
    let mut order: Vec<u64> = (0..FILE / record).collect();
    let mut rng = Rng::new(record_kib);
    for index in (1..order.len()).rev() {
        order.swap(index, rng.below(index as u64 + 1) as usize);
    }
    let start = host.now;
    order.iter().for_each(|index| host.read(OFFSET + index * record, record));
    let read = rate(&host, start, FILE);
    let start = host.now;
    order.iter().for_each(|index| host.write(OFFSET + index * record, record));
    host.audit();
    [rewrite, read, rate(&host, start, FILE)]
}

/// Record in KiB; published rewrite, random read, random write in KiB/s.
type Row = (u64, [f64; 3]);

const INTENSO: &[Row] = &[
    (4, [1392.0, 6795.0, 138.0]),
    (16, [6068.0, 11324.0, 38.0]),
    (128, [8557.0, 29268.0, 307.0]),
    (512, [9108.0, 29798.0, 1230.0]),
    (1024, [9192.0, 40590.0, 2340.0]),
    (16384, [10630.0, 43714.0, 10604.0]),
];

const ULTRA: &[Row] = &[
    (4, [2515.0, 8576.0, 644.0]),
    (16, [5402.0, 22608.0, 84.0]),
    (128, [10984.0, 39844.0, 708.0]),
    (512, [10216.0, 43357.0, 2637.0]),
    (1024, [11369.0, 44654.0, 5303.0]),
    (16384, [13070.0, 45842.0, 12895.0]),
];

fn compare(profile: &str, rows: &[Row]) -> Vec<[f64; 3]> {
    let ratios = |&(record, published): &Row| {
        let found = iozone(profile, record);
        println!("{profile} {record:5} KiB: {found:8.0?} KiB/s, published {published:?}");
        std::array::from_fn(|index| found[index] / published[index])
    };
    rows.iter().map(ratios).collect()
}

#[test]
fn slow_cards_collapse_at_16_kib_and_less_below() {
    for (profile, rows) in [("intenso-class4-4g", INTENSO), ("sandisk-ultra-8g", ULTRA)] {
        let ratios = compare(profile, rows);
        for (row, ratio) in rows.iter().zip(&ratios) {
            assert!(ratio.iter().all(|ratio| (0.5..2.0).contains(ratio)), "{profile} {row:?}: {ratio:.2?}");
        }
    }
}
