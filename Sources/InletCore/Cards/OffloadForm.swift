/// The forms in which a report on cards is written to a file.
package enum OffloadForm: String, Sendable, CaseIterable {
    case html
    case csv
    case json
    case text

    package var ending: String { self == .text ? "txt" : rawValue }

    package var mediaType: String {
        switch self {
        case .html: "text/html"
        case .csv: "text/csv"
        case .json: "application/json"
        case .text: "text/plain"
        }
    }
}
