//! Whole lives of a virtual card in simulated time: the forecast from samples of `monitor` against the card's true end.
//!
//! The true end is read from the simulated card: the day on which it refuses writes because no spare block is left, or
//! on which its used life passes 100 %. Nothing of the forecast is in it. The registers of the samples are the card's
//! EXT_CSD, and the lines are those of `monitor`.

use emmc_analysis::health::{Forecast, ForecastOptions, HistoryPoint, Moment, forecast, parse_history};
use emmc_analysis::sample::{Sample, SampleIdentity, last_of};
use emmc_card::card::Card;
use emmc_card::device::DeviceOptions;
use emmc_card::nand::StoredContent;
use emmc_card::profile::{Ageing, Profile};
use emmc_port::{Activity, BlockOp, BlockRequest, BlockTarget, CardData, Format, TargetError};
use emmc_regs::ext_csd::ExtCsd;
use emmc_sim::SimTarget;
use emmc_units::Instant;
use emmc_workload::duty::{Duty, DutyLoad, Partition, Rate, Requests};
use emmc_workload::{BenchError, Progress, Unwatched};

use crate::support::{emmclab, save, scratch, testdata};

const MB: f64 = 1e6;

/// What is written.
#[derive(Clone, Copy)]
struct Load {
    name: &'static str,
    mb_a_day: f64,
    random_share: f64,
    /// Of the user area; the rest is cold.
    data_share: f64,
    /// Added on every seventh day, sequential.
    weekly_mb: f64,
    /// From this day on twice as much is written.
    doubled_from: Option<usize>,
}

const STEADY: Load =
    Load { name: "", mb_a_day: 0.0, random_share: 0.0, data_share: 1.0, weekly_mb: 0.0, doubled_from: None };
const SEQUENTIAL: Load = Load { name: "sequential", mb_a_day: 110.0, ..STEADY };
const RANDOM: Load = Load { name: "random", mb_a_day: 28.0, random_share: 1.0, data_share: 0.25, ..STEADY };
const MIXED: Load = Load { name: "mixed", mb_a_day: 30.0, random_share: 0.5, data_share: 0.25, ..STEADY };
const HOT_COLD: Load = Load { name: "hot-cold", mb_a_day: 55.0, random_share: 1.0, data_share: 0.1, ..STEADY };
const BURSTS: Load = Load { name: "weekly bursts", mb_a_day: 12.0, random_share: 0.2, weekly_mb: 180.0, ..STEADY };

/// A life as daily samples, and its end.
struct Life {
    samples: Vec<Sample>,
    /// The card's registers at the last sample before half of the life, for `health`.
    half_life: Vec<u8>,
    /// Days from the first sample: the end is between these two.
    end: [f64; 2],
    is_read_only: bool,
    used_share: f64,
}

/// `examples/small-card.toml`.
fn small_card() -> Profile {
    Profile::from_toml(&std::fs::read_to_string(testdata("../examples/small-card.toml")).unwrap()).unwrap()
}

/// The same with many reserved blocks, and blocks of which most last much longer than rated.
fn sturdy_card() -> Profile {
    let mut profile = small_card();
    profile.nand.native.endurance_spread = 0.9;
    profile.nand.spare_blocks = 100;
    profile
}

fn duty(load: &Load, bytes_per_day: f64, random_share: f64, partition: Partition, seed: u64) -> Duty {
    let rate = Rate {
        bytes_per_day,
        random_share,
        block_bytes: 4096,
        data_bytes: (partition.bytes() as f64 * load.data_share) as u64 / 4096 * 4096,
        log_in_memory: None,
        update: None,
        filesystem: None,
    };
    Duty::new(&DutyLoad { requests: Requests::Rate(rate), flush_s: None, depth: 1, seed }, partition, true).unwrap()
}

/// Writes; false: the card has become read-only.
fn write(target: &mut SimTarget, duty: &mut Duty, bytes: f64) -> bool {
    let step = Progress { step: "a day", number: 1, steps: 1, done_share: 0.0, whole: None, now: None };
    match duty.run(target, bytes as u64, true, step, &mut Unwatched).ended {
        None => true,
        Some(BenchError::Target(TargetError::WornOut { .. })) => false,
        Some(error) => panic!("{error}"),
    }
}

/// A sample of the host after a day.
fn sample(target: &SimTarget, day: usize) -> Sample {
    let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
    let mut card = CardData::new("card", Format::Live);
    card.ext_csd = Some(ExtCsd::from_bytes(target.device().registers().ext_csd));
    card.origins[0].taken_at = Some((start + jiff::SignedDuration::from_hours(24 * day as i64)).to_string());
    let activity = Activity { read_only: Some(target.device().is_worn_out()), ..Activity::default() };
    Sample::of(&card, &[], Some("mmcblk0"), &activity, SampleIdentity::default()).unwrap()
}

/// A card that is full: the load overwrites.
fn filled(profile: &Profile, seed: u64) -> (SimTarget, Partition) {
    let card = Card::new(profile.clone(), DeviceOptions { keep: StoredContent::Nothing, seed }).unwrap();
    let mut target = SimTarget::new(card.into_parts().0, "card", Instant::START, true);
    let partition = Partition { from_bytes: 0, to_bytes: target.shape().size_bytes };
    for offset_bytes in (0..partition.to_bytes).step_by(512 << 10) {
        let bytes = (partition.to_bytes - offset_bytes).min(512 << 10);
        target.complete(BlockRequest { op: BlockOp::Write, offset_bytes, bytes, through: false, tag: 0 }).unwrap();
    }
    (target, partition)
}

/// Runs a life to its end: read-only, or 100 % used.
fn live(profile: &Profile, load: &Load, seed: u64) -> Life {
    let (mut target, partition) = filled(profile, seed);
    let mut base = duty(load, load.mb_a_day * MB, load.random_share, partition, 1);
    let mut burst = (load.weekly_mb > 0.0).then(|| duty(load, load.weekly_mb * MB, 0.0, partition, 2));
    let (mut samples, mut registers, mut day_mb) = (Vec::new(), Vec::new(), load.mb_a_day);
    for day in 1.. {
        samples.push(sample(&target, day - 1));
        registers.push(target.device().registers().ext_csd);
        if load.doubled_from == Some(day) {
            day_mb *= 2.0;
            base = duty(load, day_mb * MB, load.random_share, partition, 3);
        }
        let burst = burst.as_mut().filter(|_| day % 7 == 0);
        let is_alive = write(&mut target, &mut base, day_mb * MB)
            && burst.is_none_or(|burst| write(&mut target, burst, load.weekly_mb * MB));
        let used_share = target.device().health().used_multi_bit.unwrap();
        if !is_alive || used_share >= 1.0 {
            assert_eq!(target.device().is_worn_out(), !is_alive);
            samples.push(sample(&target, day));
            let (end, half_life) = ([(day - 1) as f64, day as f64], registers[day / 2].to_vec());
            return Life { samples, half_life, end, is_read_only: !is_alive, used_share };
        }
    }
    unreachable!("a life ends")
}

/// The lines that `monitor --append` writes, up to a day.
fn appended(samples: &[Sample]) -> String {
    let mut log = String::new();
    for sample in samples {
        if last_of(&log, sample).is_none_or(|recorded| sample.is_news_after(&recorded, 30)) {
            log += &sample.line();
        }
    }
    log
}

/// Bounds in days after the first sample.
fn bounds(points: &[HistoryPoint], earliest: Option<&Moment>, latest: Option<&Moment>) -> [Option<f64>; 2] {
    let last = points.last().unwrap().time.duration_since(points[0].time).as_secs_f64() / 86_400.0;
    [earliest, latest].map(|moment| moment.map(|moment| last + moment.days))
}

/// Strict: the end is somewhere between two samples, and the whole of that time must be within the bounds.
fn hold([earliest, latest]: [Option<f64>; 2], end: [f64; 2]) -> bool {
    earliest.is_none_or(|earliest| earliest <= end[0]) && latest.is_none_or(|latest| latest >= end[1])
}

/// The forecasts after each sample but the last, which shows the end, with the bounds of the card's end.
fn forecasts(log: &str) -> Vec<(Vec<HistoryPoint>, Forecast)> {
    let points = parse_history("samples", log).unwrap();
    let known = |count| (points[..count].to_vec(), forecast(&points[..count], &ForecastOptions::default()).unwrap());
    (1..=points.len()).map(known).collect()
}

/// What a life has shown.
struct Shown {
    life: Life,
    /// Forecasts, by daily samples, with one bound or both, of which all held.
    bounded: usize,
    /// Those at which the bounds of the life time register alone do not hold the card's end.
    register_alone_fails: usize,
    /// (latest - earliest) / remaining time at half of the life.
    width_at_half: f64,
}

/// Lives a life; all bounds of all forecasts must hold the true end, from daily samples and from the monitor's log.
fn all_bounds_hold(profile: &Profile, load: &Load, seed: u64) -> Shown {
    let life = live(profile, load, seed);
    let daily: String = life.samples.iter().map(Sample::line).collect();
    let (mut bounded, mut register_alone_fails, mut width_at_half) = (0, 0, f64::NAN);
    for (log, is_daily) in [(daily, true), (appended(&life.samples), false)] {
        let mut all = forecasts(&log);
        let (points, last) = all.pop().unwrap();
        let found = bounds(&points, last.end.earliest.as_ref(), last.end.latest.as_ref());
        let at = found.map(|bound| bound.map(f64::round));
        assert_eq!((last.end.outcome, at[1]), (emmc_analysis::health::Outcome::Reached, Some(life.end[1])));
        assert!(at[0].is_some_and(|before| before <= life.end[0]), "{:?}", last.end);
        for (points, forecast) in all {
            let end = &forecast.end;
            let found = bounds(&points, end.earliest.as_ref(), end.latest.as_ref());
            assert!(hold(found, life.end), "{}, seed {seed}: {found:?} not {:?}: {end:?}", load.name, life.end);
            let b = &forecast.life_b;
            let alone = bounds(&points, b.earliest.as_ref(), b.latest.as_ref());
            if is_daily {
                bounded += usize::from(found.iter().any(Option::is_some));
                register_alone_fails += usize::from(!hold(alone, life.end));
                if let ([Some(earliest), Some(latest)], true) = (found, points.len() == life.samples.len() / 2) {
                    width_at_half = (latest - earliest) / (life.end[1] - (points.len() - 1) as f64);
                }
            }
        }
    }
    let end = if life.is_read_only { "read-only" } else { "100 % used" };
    println!(
        "{:14} seed {seed}: {end} on day {}, {:.1} % used; {bounded} forecasts with bounds, all hold (those of the \
         register alone fail in {register_alone_fails}); width at half of the life {:.2} of the rest",
        load.name,
        life.end[1],
        100.0 * life.used_share,
        width_at_half
    );
    Shown { life, bounded, register_alone_fails, width_at_half }
}

/// A year that ends read-only before 100 %: the bounds of the register alone are too late.
fn a_year_ends_within_its_bounds(load: &Load) -> Shown {
    let shown = all_bounds_hold(&small_card(), load, 1);
    let days = shown.life.samples.len();
    assert!(shown.life.is_read_only && (300..450).contains(&days), "{days} days");
    assert!(shown.bounded > days * 9 / 10 && shown.register_alone_fails > days / 2);
    assert!(shown.width_at_half < 0.7, "{}", shown.width_at_half);
    shown
}

#[test]
fn a_sequential_year_ends_within_its_bounds_also_as_the_binary_prints_them() {
    let life = a_year_ends_within_its_bounds(&SEQUENTIAL).life;
    let folder = scratch("whole_lives");
    let half = life.samples.len() / 2;
    let log = appended(&life.samples[..half]);
    assert!(log.lines().count() < 20, "{log}");
    let (card, log) = (save(&folder, "card.bin", &life.half_life), save(&folder, "samples.ndjson", log));
    let at = &life.samples[half - 1].time;
    let args = ["health", &card, "--at", at, "--history", &log];
    let end = emmclab(args.iter().chain(&["--json"])).exits(0).json()["forecast"]["end"].take();
    let found = ["earliest", "latest"].map(|bound| Some((half - 1) as f64 + end[bound]["days"].as_f64().unwrap()));
    assert!(hold(found, life.end), "{end} not {:?}", life.end);
    let day = |bound: &str| end[bound]["time"].as_str().unwrap()[..10].to_owned();
    let sentence = format!("the card's end: between {} and {} at the present rate", day("earliest"), day("latest"));
    emmclab(args).exits(0).says(&[&sentence]);
}

#[test]
fn a_random_year_ends_within_its_bounds() {
    a_year_ends_within_its_bounds(&RANDOM);
}

#[test]
fn a_mixed_year_ends_within_its_bounds() {
    a_year_ends_within_its_bounds(&MIXED);
}

#[test]
fn a_hot_cold_year_ends_within_its_bounds() {
    a_year_ends_within_its_bounds(&HOT_COLD);
}

#[test]
fn a_year_of_weekly_bursts_ends_within_its_bounds() {
    a_year_ends_within_its_bounds(&BURSTS);
}

/// The end is 100 % used, which puts the latest bound to the test.
#[test]
fn a_life_that_uses_its_rating_up_ends_within_its_bounds() {
    let shown = all_bounds_hold(&sturdy_card(), &Load { name: "bursts, sturdy", ..BURSTS }, 1);
    assert!(!shown.life.is_read_only);
}

/// Twice the load from the middle on. No observation shows that until the register moves too early: what was forecast
/// until then assumes the old rate. From then on only later observations count, and the bounds hold.
#[test]
fn bounds_hold_from_when_a_change_of_the_rate_is_seen() {
    let changed = 200;
    let life = live(&small_card(), &Load { doubled_from: Some(changed), ..RANDOM }, 1);
    let daily: String = life.samples.iter().map(Sample::line).collect();
    let all = forecasts(&daily);
    let (mut unseen, mut wrong, mut seen, mut two_sided) = (0, 0, 0, 0);
    for (points, forecast) in &all[changed..all.len() - 1] {
        let end = &forecast.end;
        let found = bounds(points, end.earliest.as_ref(), end.latest.as_ref());
        if end.rate_changed {
            assert!(hold(found, life.end), "{found:?} not {:?}: {end:?}", life.end);
            assert!(end.used_since.as_ref().is_some_and(|since| *since >= life.samples[changed].time), "{end:?}");
            (seen, two_sided) = (seen + 1, two_sided + usize::from(found[1].is_some()));
        } else {
            assert_eq!(seen, 0, "a change that was seen stays seen");
            (unseen, wrong) = (unseen + 1, wrong + usize::from(!hold(found, life.end)));
        }
    }
    println!(
        "doubled from day {changed}, read-only on day {}: not seen for {unseen} days, of which {wrong} forecasts do not \
         hold; then all {seen} hold, {two_sided} of them with both bounds",
        life.end[1]
    );
    assert!(unseen < 30 && seen > 40 && two_sided > 20);
}

/// Where the most worn blocks are more than 10 % of the rating ahead of the average, or blocks fail before their
/// rating, no register shows it: the card ends before its earliest time. The latest time holds, and all bounds do once
/// PRE_EOL_INFO warns.
#[test]
fn the_earliest_time_is_too_late_where_blocks_fail_far_ahead_of_the_average() {
    let uneven = Load { name: "5 % random", mb_a_day: 25.0, random_share: 0.05, ..STEADY };
    let mut weak = small_card();
    weak.nand.ageing = Some(Ageing { endurance_below: true, ..Ageing::default() });
    let cases = [(small_card(), uneven), (weak, Load { name: "weak blocks", ..SEQUENTIAL })];
    for (profile, load) in cases {
        let life = live(&profile, &load, 1);
        assert!(life.is_read_only && (0.75..0.9).contains(&life.used_share), "{}", life.used_share);
        let daily: String = life.samples.iter().map(Sample::line).collect();
        let (mut late, mut warned, mut all) = (Vec::new(), 0, forecasts(&daily));
        all.pop();
        for (points, forecast) in &all {
            let [earliest, latest] = bounds(points, forecast.end.earliest.as_ref(), forecast.end.latest.as_ref());
            assert!(hold([None, latest], life.end), "{latest:?} not {:?}", life.end);
            let is_warned = points.last().is_some_and(|point| point.pre_eol > Some(1));
            warned += usize::from(is_warned);
            if let Some(earliest) = earliest.filter(|earliest| *earliest > life.end[0]) {
                assert!(!is_warned, "{earliest} not {:?}", life.end);
                late.push(earliest - life.end[1]);
            }
        }
        let worst = late.iter().copied().fold(0.0, f64::max);
        println!(
            "{:14} seed 1: read-only on day {}, {:.1} % used; of {} forecasts the earliest time of {} is too late, by \
             {worst:.0} days at most; PRE_EOL_INFO warned {warned} days before",
            load.name,
            life.end[1],
            100.0 * life.used_share,
            all.len(),
            late.len()
        );
        assert!(!late.is_empty(), "the docs name this limit");
    }
}
