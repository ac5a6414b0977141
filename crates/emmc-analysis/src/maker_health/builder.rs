//! Collects readings and separates impossible ones.

use super::Family;
use super::meaning::{ERASES_MAX, Group, Limit, Meaning, Stat};
use super::model::{Area, AreaWear, Confidence, Implausible, Reading, Value, VendorHealth};

/// A report under construction.
pub(super) struct Builder {
    health: VendorHealth,
}

impl Builder {
    pub(super) fn new(family: Family, source: impl Into<String>) -> Self {
        let health = VendorHealth {
            family,
            label: family.label().to_owned(),
            source: source.into(),
            areas: Vec::new(),
            bad_blocks: Vec::new(),
            spares: Vec::new(),
            life: Vec::new(),
            counters: Vec::new(),
            identity: Vec::new(),
            blocks: Vec::new(),
            implausible: Vec::new(),
            notes: Vec::new(),
        };
        Self { health }
    }

    /// Which report this is.
    pub(super) fn source(&self) -> &str {
        &self.health.source
    }

    /// The report so far.
    pub(super) fn health(&mut self) -> &mut VendorHealth {
        &mut self.health
    }

    /// Adds a note on the whole report, once.
    pub(super) fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.health.notes.contains(&note) {
            self.health.notes.push(note);
        }
    }

    /// Adds a possible value, or flags an impossible one.
    ///
    /// A known name keeps its first value: reports print some figures twice.
    pub(super) fn put(&mut self, meaning: &Meaning, value: Value, source: String, confidence: Confidence) {
        let expected = match (meaning.limit, &value) {
            (Limit::Percent, value) if !within(value, 0.0, 100.0) => Some("0 to 100".to_owned()),
            (Limit::PercentFromOne, value) if !within(value, 1.0, 100.0) => {
                Some("1 to 100, where 1 is less than one percent used".to_owned())
            }
            (Limit::Erases, value) if !within(value, 0.0, ERASES_MAX as f64) => {
                Some(format!("0 to {ERASES_MAX}: no block survives more"))
            }
            (Limit::Celsius, value) if !within(value, -60.0, 150.0) => Some("-60 to 150".to_owned()),
            (Limit::Count, value) if !within(value, 0.0, f64::MAX) => Some("a count".to_owned()),
            _ => None,
        };
        if let Some(expected) = expected {
            return self.flag(meaning, value.to_string(), expected, source);
        }
        let reading = Reading { name: meaning.name, value, unit: meaning.unit, source, confidence };
        if let Some(place) = self.place(meaning.group) {
            place.get_or_insert(reading);
            return;
        }
        let group = match meaning.group {
            Group::BadBlocks => &mut self.health.bad_blocks,
            Group::Spares => &mut self.health.spares,
            Group::Life => &mut self.health.life,
            Group::Identity => &mut self.health.identity,
            Group::Counters | Group::Erases(..) => &mut self.health.counters,
        };
        if !group.iter().any(|known| known.name == reading.name) {
            group.push(reading);
        }
    }

    /// Flags an impossible value.
    pub(super) fn flag(
        &mut self,
        meaning: &Meaning,
        found: impl Into<String>,
        expected: impl Into<String>,
        source: impl Into<String>,
    ) {
        let area = match meaning.group {
            Group::Erases(area, _) => Some(area),
            _ => None,
        };
        let flagged = Implausible {
            name: meaning.name,
            area,
            found: found.into(),
            expected: expected.into(),
            source: source.into(),
        };
        if !self.health.implausible.contains(&flagged) {
            self.health.implausible.push(flagged);
        }
    }

    fn place(&mut self, group: Group) -> Option<&mut Option<Reading>> {
        let Group::Erases(area, stat) = group else { return None };
        let areas = &mut self.health.areas;
        let at = areas.iter().position(|wear| wear.area == area).unwrap_or_else(|| {
            areas.push(AreaWear::new(area));
            areas.len() - 1
        });
        let wear = areas.get_mut(at)?;
        Some(match stat {
            Stat::Min => &mut wear.min,
            Stat::Max => &mut wear.max,
            Stat::Average => &mut wear.average,
            Stat::Total => &mut wear.total,
            Stat::Rated => &mut wear.rated,
        })
    }

    /// The report, without the erase counts that contradict each other.
    pub(super) fn finish(mut self) -> VendorHealth {
        let mut flagged = Vec::new();
        for wear in &mut self.health.areas {
            check(wear, &mut flagged);
        }
        self.health.areas.retain(|wear| wear.readings().next().is_some());
        self.health.implausible.append(&mut flagged);
        self.health
    }
}

fn within(value: &Value, least: f64, most: f64) -> bool {
    value.as_f64().is_none_or(|number| (least..=most).contains(&number))
}

/// Removes contradicting values, because it is unknown which one is wrong.
fn check(wear: &mut AreaWear, flagged: &mut Vec<Implausible>) {
    let number = |reading: &Option<Reading>| reading.as_ref().and_then(|reading| reading.value.as_f64());
    let (min, max) = (number(&wear.min), number(&wear.max));
    if min.zip(max).is_some_and(|(min, max)| min > max) {
        let expected = format!("at most the maximum, {}", max.unwrap_or_default());
        flagged.extend(implausible(wear.area, wear.min.take(), expected));
        let expected = format!("at least the minimum, {}", min.unwrap_or_default());
        flagged.extend(implausible(wear.area, wear.max.take(), expected));
        flagged.extend(implausible(wear.area, wear.average.take(), "between minimum and maximum".to_owned()));
        return;
    }
    let Some(average) = number(&wear.average) else { return total(wear, max, flagged) };
    // Some firmware rounds the mean down, some up.
    let low = min.is_some_and(|min| average < min.floor());
    let high = max.is_some_and(|max| average > max.ceil());
    if low || high {
        let text = |bound: Option<f64>| bound.map_or("?".to_owned(), |bound| bound.to_string());
        let expected = format!("between {} and {}", text(min), text(max));
        flagged.extend(implausible(wear.area, wear.average.take(), expected));
    }
    total(wear, max, flagged);
}

fn total(wear: &mut AreaWear, max: Option<f64>, flagged: &mut Vec<Implausible>) {
    let sum = wear.total.as_ref().and_then(|reading| reading.value.as_f64());
    if sum.zip(max).is_some_and(|(sum, max)| sum < max) {
        let expected = format!("at least the maximum, {}", max.unwrap_or_default());
        flagged.extend(implausible(wear.area, wear.total.take(), expected));
    }
}

fn implausible(area: Area, reading: Option<Reading>, expected: String) -> Option<Implausible> {
    let reading = reading?;
    let (name, found) = (reading.name, reading.value.to_string());
    Some(Implausible { name, area: Some(area), found, expected, source: reading.source })
}

#[cfg(test)]
mod tests {
    use super::super::meaning::{INITIAL_BAD_BLOCKS, LIFE_LEFT_PERCENT, LIFE_USED_PERCENT, erases};
    use super::*;

    fn put(builder: &mut Builder, meaning: Meaning, value: i64) {
        builder.put(&meaning, Value::Integer(value), "test".to_owned(), Confidence::SingleSource);
    }

    fn wear(min: i64, max: i64, average: i64, total: i64) -> VendorHealth {
        let mut builder = Builder::new(Family::Micron, "test");
        put(&mut builder, erases(Area::Slc, Stat::Min), min);
        put(&mut builder, erases(Area::Slc, Stat::Max), max);
        put(&mut builder, erases(Area::Slc, Stat::Average), average);
        put(&mut builder, erases(Area::Slc, Stat::Total), total);
        builder.finish()
    }

    #[test]
    fn a_minimum_above_the_maximum_removes_all_three_values() {
        let health = wear(5, 3, 4, 1000);
        assert_eq!(health.implausible.len(), 3);
        assert_eq!(health.area(Area::Slc).unwrap().readings().count(), 1);
        assert_eq!(health.implausible[0].found, "5");
    }

    #[test]
    fn an_average_or_sum_out_of_range_is_removed_alone() {
        let health = wear(1, 10, 11, 1000);
        assert_eq!(health.implausible.len(), 1);
        assert_eq!((health.implausible[0].name, health.implausible[0].found.as_str()), ("erase_count_average", "11"));
        let health = wear(1, 10, 5, 9);
        assert_eq!(health.implausible[0].name, "erase_count_total");
        assert_eq!(health.area(Area::Slc).unwrap().readings().count(), 3);
        assert!(wear(1, 10, 5, 500).implausible.is_empty());
    }

    #[test]
    fn impossible_percentages_and_erase_counts_are_left_out() {
        let mut builder = Builder::new(Family::TwoStepSd, "test");
        builder.put(&LIFE_LEFT_PERCENT, Value::Decimal(453.0), "test".to_owned(), Confidence::SingleSource);
        put(&mut builder, LIFE_USED_PERCENT, 199);
        put(&mut builder, erases(Area::Global, Stat::Max), 16_777_216);
        let health = builder.finish();
        let found: Vec<&str> = health.implausible.iter().map(|flagged| flagged.found.as_str()).collect();
        assert_eq!(found, ["453.00", "199", "16777216"]);
        assert_eq!(health.readings().count(), 0);
    }

    #[test]
    fn a_name_keeps_its_first_value() {
        let mut builder = Builder::new(Family::Micron, "test");
        put(&mut builder, INITIAL_BAD_BLOCKS, 1);
        put(&mut builder, INITIAL_BAD_BLOCKS, 2);
        assert_eq!(builder.finish().number("initial_bad_blocks"), Some(1.0));
    }
}
