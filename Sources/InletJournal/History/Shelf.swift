/// Where files are kept in the journal: among those that are worked with, or in the history. Both can be asked the same
/// question: `\(shelf.files)` and `\(shelf.deliveries)` stand for `file` and `delivery`, with all their columns.
///
/// All that the history has of a path is older than all that is not there: who looks for the newest asks `current` first,
/// and the history only if there is nothing.
enum Shelf: CaseIterable {
    case current
    case history

    var files: String { self == .current ? "file" : "history_as_file AS file" }
    var deliveries: String { self == .current ? "delivery" : "history_as_delivery AS delivery" }
}
