//! Merges two reports of one card that do not contradict each other.

use std::collections::BTreeMap;

use super::model::{AreaWear, BlockWear, Reading, VendorHealth};

impl VendorHealth {
    /// Adds the values of another report of the same card; duplicates are kept once.
    ///
    /// Errors: gives the other report back where family or a value differ, so that both can be shown.
    pub fn merge(&mut self, other: Self) -> Result<(), Box<Self>> {
        if self.family != other.family || self.contradicts(&other) {
            return Err(Box::new(other));
        }
        append(&mut self.bad_blocks, other.bad_blocks);
        append(&mut self.spares, other.spares);
        append(&mut self.life, other.life);
        append(&mut self.counters, other.counters);
        append(&mut self.identity, other.identity);
        for wear in other.areas {
            match self.areas.iter_mut().find(|known| known.area == wear.area) {
                Some(known) => known.fill(wear),
                None => self.areas.push(wear),
            }
        }
        merge_blocks(&mut self.blocks, other.blocks);
        add_new(&mut self.implausible, other.implausible);
        add_new(&mut self.notes, other.notes);
        if !self.source.split("; ").any(|source| source == other.source) {
            self.source = format!("{}; {}", self.source, other.source);
        }
        Ok(())
    }

    fn contradicts(&self, other: &Self) -> bool {
        let readings = other.readings().any(|(their_area, theirs)| {
            self.readings()
                .any(|(area, ours)| area == their_area && ours.name == theirs.name && ours.value != theirs.value)
        });
        let known: BTreeMap<u32, Option<u32>> = self.blocks.iter().map(|row| (row.block, row.erases)).collect();
        let blocks = other.blocks.iter().any(|row| {
            let ours = known.get(&row.block).copied().flatten();
            ours.zip(row.erases).is_some_and(|(ours, theirs)| ours != theirs)
        });
        readings || blocks
    }
}

impl AreaWear {
    fn fill(&mut self, other: Self) {
        self.min = self.min.take().or(other.min);
        self.max = self.max.take().or(other.max);
        self.average = self.average.take().or(other.average);
        self.total = self.total.take().or(other.total);
        self.rated = self.rated.take().or(other.rated);
    }
}

fn merge_blocks(ours: &mut Vec<BlockWear>, theirs: Vec<BlockWear>) {
    let places: BTreeMap<u32, usize> = ours.iter().enumerate().map(|(place, row)| (row.block, place)).collect();
    for row in theirs {
        match places.get(&row.block).and_then(|&place| ours.get_mut(place)) {
            Some(known) => {
                known.erases = known.erases.or(row.erases);
                known.cell = known.cell.or(row.cell);
            }
            None => ours.push(row),
        }
    }
}

fn append(ours: &mut Vec<Reading>, theirs: Vec<Reading>) {
    for reading in theirs {
        if !ours.iter().any(|known| known.name == reading.name) {
            ours.push(reading);
        }
    }
}

fn add_new<T: PartialEq>(ours: &mut Vec<T>, theirs: Vec<T>) {
    for item in theirs {
        if !ours.contains(&item) {
            ours.push(item);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::maker_health::{Area, Cell, Family, decode_reply};

    fn micron(argument: u32, words: &[(usize, u16)]) -> crate::maker_health::VendorHealth {
        let mut reply = [0u8; 512];
        for &(at, word) in words {
            reply[at..at + 2].copy_from_slice(&word.to_be_bytes());
        }
        decode_reply(Some(Family::Micron), Some(argument), &reply).unwrap()
    }

    #[test]
    fn erase_and_type_tables_merge_by_block() {
        let mut health = micron(0x85, &[(0, 74), (2, 96), (256, 1689), (258, 1654)]);
        let types = micron(0x87, &[(0, 96), (256, 1)]);
        health.merge(types).unwrap();
        assert_eq!(health.blocks.len(), 2);
        assert_eq!((health.blocks[0].block, health.blocks[0].erases, health.blocks[0].cell), (74, Some(1689), None));
        assert_eq!((health.blocks[1].erases, health.blocks[1].cell), (Some(1654), Some(Cell::Slc)));
    }

    #[test]
    fn contradicting_reports_are_not_merged() {
        let mut health = micron(0x21, &[(0, 1), (2, 1689), (4, 619)]);
        let later = micron(0x21, &[(0, 1), (2, 1690), (4, 619)]);
        assert_eq!(*health.merge(later.clone()).unwrap_err(), later);
        health.merge(micron(0x11, &[(4, 72)])).unwrap();
        assert_eq!(health.area(Area::Global).unwrap().max.as_ref().unwrap().value.as_i64(), Some(1689));
        assert_eq!(health.number("spare_blocks_total"), Some(72.0));
        assert!(health.source.contains("0x00000021") && health.source.contains("0x00000011"));
    }
}
