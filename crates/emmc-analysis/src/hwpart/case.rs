//! A request for a given card: relative sizes become exact; exact sizes stay unchanged and are checked by the rules.

use emmc_port::CardData;
use emmc_units::{Bytes, SECTOR_BYTES, Size};

use super::facts::Facts;
use super::model::{Model, Placed};
use super::request::{GpRequest, LayoutRequest};

/// One piece of a layout.
#[derive(Clone, Copy)]
pub(super) struct Piece {
    pub(super) requested: Size,
    /// Its size; absent if a relative size cannot be computed.
    pub(super) bytes: Option<u64>,
}

pub(super) struct Case<'a> {
    pub(super) facts: Facts<'a>,
    pub(super) request: &'a LayoutRequest,
    pub(super) model: Option<Model>,
    pub(super) enh: Option<Piece>,
    pub(super) gp: [Option<Piece>; 4],
    /// Notes on the resolved relative sizes.
    pub(super) notes: Vec<String>,
}

impl Piece {
    fn of(size: Size) -> Self {
        let bytes = if let Size::Exact(Bytes(bytes)) = size { Some(bytes) } else { None };
        Self { requested: size, bytes }
    }

    /// Groups, rounded up.
    pub(super) fn groups(&self, group: Bytes) -> Option<u64> {
        Some(self.bytes?.div_ceil(group.0))
    }
}

impl<'a> Case<'a> {
    pub(super) fn new(card: &'a CardData, request: &'a LayoutRequest) -> Self {
        let facts = Facts::new(card);
        let mut case = Self {
            model: Model::new(&facts),
            facts,
            request,
            enh: request.enh_user.map(|enh| Piece::of(enh.size)),
            gp: request.gp.map(|gp| gp.map(|gp| Piece::of(gp.size))),
            notes: Vec::new(),
        };
        if let Some(model) = case.model {
            case.resolve(&model);
        }
        case
    }

    /// Percentages are shares of the size that is possible beside the exact pieces, so that 50 % and 50 % fit together;
    /// `max` is the rest after exact pieces and percentages.
    fn resolve(&mut self, model: &Model) {
        let exact = self.placed();
        let percent = |largest: u64, piece: Piece| match piece.requested {
            Size::Percent(percent) => Some((largest.saturating_mul(u64::from(percent)) / 100, Some(largest))),
            _ => None,
        };
        self.resolve_where(model, &exact, percent);
        let rest = self.placed();
        self.resolve_where(model, &rest, |largest, piece| (piece.requested == Size::Max).then_some((largest, None)));
    }

    fn resolve_where(
        &mut self,
        model: &Model,
        placed: &Placed,
        size: impl Fn(u64, Piece) -> Option<(u64, Option<u64>)>,
    ) {
        let group_bytes = model.group * SECTOR_BYTES;
        let mut found = |name: &str, largest: u64, piece: &mut Piece| {
            let Some((groups, of)) = size(largest, *piece).filter(|_| piece.bytes.is_none()) else { return };
            piece.bytes = groups.checked_mul(group_bytes);
            let text = self.facts.groups_text(groups);
            self.notes.push(match of {
                Some(largest) => format!("{name} {}: {text}, rounded down; 100 % is {largest} groups", piece.requested),
                None => format!("{name} max: {text}, the largest for which every rule holds"),
            });
        };
        for (index, gp) in self.request.gp.iter().enumerate() {
            if let (Some(gp), Some(piece)) = (gp, self.gp[index].as_mut()) {
                found(super::AREAS[index + 1], model.largest_gp(placed, gp.enh), piece);
            }
        }
        if let (Some(enh), Some(piece)) = (self.request.enh_user, self.enh.as_mut()) {
            found("enhanced user area", model.largest_enh_user(placed, enh.start.0.div_ceil(SECTOR_BYTES)), piece);
        }
    }

    /// The pieces whose size is known.
    pub(super) fn placed(&self) -> Placed {
        let Some(group) = self.facts.group else { return Placed::default() };
        let groups = |piece: &Option<Piece>| piece.and_then(|piece| piece.groups(group)).unwrap_or(0);
        let enh_user = groups(&self.enh);
        let start = self.request.enh_user.map(|enh| enh.start.0.div_ceil(SECTOR_BYTES)).filter(|_| enh_user > 0);
        let mut placed = Placed { enh_start: start, enh_user, ..Placed::default() };
        for (request, piece) in self.request.gp.iter().zip(&self.gp) {
            let Some(request) = request else { continue };
            let sum = if request.enh { &mut placed.enh_gp } else { &mut placed.plain_gp };
            *sum = sum.saturating_add(groups(piece));
        }
        placed
    }

    /// Each requested partition: its index from 0, the request, its size.
    pub(super) fn gps(&self) -> impl Iterator<Item = (usize, GpRequest, Piece)> + '_ {
        let pairs = self.request.gp.iter().zip(&self.gp).enumerate();
        pairs.filter_map(|(index, (request, piece))| Some((index, (*request)?, (*piece)?)))
    }

    /// Each piece and its name, the enhanced user area first.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&'static str, Piece)> + '_ {
        let enh = self.enh.map(|piece| ("enhanced user area", piece));
        enh.into_iter().chain(self.gps().map(|(index, _, piece)| (super::AREAS[index + 1], piece)))
    }

    /// Whether the request enhances anything.
    pub(super) fn enhances(&self) -> bool {
        self.enh.is_some() || self.gps().any(|(_, request, _)| request.enh)
    }

    /// PARTITIONS_ATTRIBUTE as the request has it.
    pub(super) fn attributes(&self) -> u8 {
        let user = u8::from(self.enh.is_some());
        self.gps().filter(|(_, request, _)| request.enh).fold(user, |bits, (index, ..)| bits | 2 << index)
    }

    /// EXT_PARTITIONS_ATTRIBUTE as the request has it, GP1 in the lowest nibble.
    pub(super) fn ext_attributes(&self) -> u16 {
        self.gps().fold(0, |bits, (index, request, _)| bits | u16::from(request.ext.nibble()) << (4 * index))
    }

    /// WR_REL_SET as the request has it; absent where the register is not known.
    pub(super) fn wr_rel_wanted(&self) -> Option<u8> {
        let now = self.facts.wr_rel_set()?;
        Some((0..5).filter(|area| self.request.has_area(*area)).fold(
            now,
            |bits, area| match self.request.wrrel_of(area) {
                Some(true) => bits | 1 << area,
                Some(false) => bits & !(1 << area),
                None => bits,
            },
        ))
    }

    /// ENH_START_ADDR of the request; absent if the unit is unknown, or the value exceeds the register.
    pub(super) fn enh_start_register(&self) -> Option<u32> {
        match self.request.enh_user?.start.0 {
            0 => Some(0),
            start => u32::try_from(start / self.facts.address_bytes?).ok(),
        }
    }
}
