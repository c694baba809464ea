//! Markers for named intervals of time.

use fxprof_processed_profile::{
    CategoryHandle, MarkerFieldFlags, MarkerFieldFormat, MarkerTiming, Profile, StaticSchemaMarker,
    StaticSchemaMarkerField, StringHandle, ThreadHandle, Timestamp,
};

/// Marker with its name.
pub(super) struct IntervalMarker(StringHandle);

impl IntervalMarker {
    pub(super) fn add(
        profile: &mut Profile,
        row: ThreadHandle,
        name: &str,
        begin: Timestamp,
        end: Timestamp,
    ) {
        let marker = Self(profile.intern_string(name));
        profile.add_marker(row, MarkerTiming::Interval(begin, end), marker);
    }
}

impl StaticSchemaMarker for IntervalMarker {
    const UNIQUE_MARKER_TYPE_NAME: &'static str = "Stretch";
    const CHART_LABEL: Option<&'static str> = Some("{marker.data.what}");
    const TABLE_LABEL: Option<&'static str> = Some("{marker.data.what}");
    const FIELDS: &'static [StaticSchemaMarkerField] = &[StaticSchemaMarkerField {
        key: "what",
        label: "What",
        format: MarkerFieldFormat::String,
        flags: MarkerFieldFlags::SEARCHABLE,
    }];

    fn name(&self, _: &mut Profile) -> StringHandle {
        self.0
    }

    fn category(&self, _: &mut Profile) -> CategoryHandle {
        CategoryHandle::OTHER
    }

    fn string_field_value(&self, _: u32) -> StringHandle {
        self.0
    }

    fn number_field_value(&self, _: u32) -> f64 {
        0.0 // there is no such field
    }
}
