import Foundation

/// The fields of an upload as the application reads them: trimmed, with its defaults and its limits.
struct GigFields: Sendable, Equatable {
    static let names = [
        "event_date", "org_name", "event_type", "label", "participants", "keywords", "location", "rating", "notes",
    ]
    static let eventTypes: Set<String> = ["band", "wedding", "other"]

    var eventDate: String
    var orgName: String
    var eventType: String
    var label: String
    var participants: String
    var keywords: String
    var location: String
    var notes: String
    /// nil unless it is all digits.
    var rating: Int?

    /// - Parameters:
    ///   - given: Absent fields get the defaults; empty ones do not.
    ///   - today: `YYYY-MM-DD`.
    /// - Throws: 400 for a date of another shape and for a missing label.
    init(_ given: [String: String], today: String) throws(GigHiveRefusal) {
        func text(_ name: String, or fallback: String = "") -> String { Self.trimmed(given[name] ?? fallback) }
        eventDate = text("event_date", or: today)
        guard Self.isDateShaped(eventDate) else {
            throw .badRequest("Invalid event_date format; expected YYYY-MM-DD")
        }
        orgName = Self.normalized(text("org_name", or: "Band"))
        eventType = text("event_type", or: "band")
        label = text("label")
        guard !label.isEmpty else { throw .badRequest("Label is required") }
        (participants, keywords) = (text("participants"), text("keywords"))
        (location, notes) = (text("location"), text("notes"))
        let digits = text("rating")
        rating = digits.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ? Int(digits) : nil
    }

    /// What the database refuses when the event is looked up, or made because it is new.
    func checkEvent(isNew: Bool) throws(GigHiveRefusal) {
        guard Self.isCalendarDate(eventDate) else {
            throw .data("22007", "Invalid datetime format: 1292 Incorrect date value: '\(eventDate)'")
        }
        guard orgName.count <= 128 else { throw Self.tooLong("org_name") }
        guard isNew else { return }
        guard Self.eventTypes.contains(eventType) else {
            throw .data("01000", "Warning: 1265 Data truncated for column 'event_type' at row 1")
        }
        guard location.count <= 255 else { throw Self.tooLong("location") }
        guard rating ?? 0 < 10 else {
            throw .data("22003", "Numeric value out of range: 1264 Out of range value for column 'rating' at row 1")
        }
    }

    /// What the database refuses when the asset, which it has by then, is put into the event.
    func checkItem() throws(GigHiveRefusal) {
        guard label.count <= 255 else { throw Self.tooLong("label") }
    }

    private static func tooLong(_ column: String) -> GigHiveRefusal {
        .data("22001", "String data, right truncated: 1406 Data too long for column '\(column)' at row 1")
    }

    /// NFC, and runs of blanks as one.
    static func normalized(_ text: String) -> String {
        text.precomposedStringWithCanonicalMapping.split(whereSeparator: \.isWhitespace).joined(separator: " ")
    }

    private static func trimmed(_ text: String) -> String { text.trimmingCharacters(in: .whitespacesAndNewlines) }

    private static func isDateShaped(_ text: String) -> Bool {
        let bytes = Array(text.utf8)
        return bytes.count == 10
            && bytes.indices.allSatisfy { index in
                index == 4 || index == 7
                    ? bytes[index] == UInt8(ascii: "-") : UInt8(ascii: "0")...UInt8(ascii: "9") ~= bytes[index]
            }
    }

    private static func isCalendarDate(_ text: String) -> Bool {
        let numbers = text.split(separator: "-").compactMap { Int($0) }
        guard numbers.count == 3 else { return false }
        let date = DateComponents(
            calendar: Calendar(identifier: .gregorian), timeZone: TimeZone(secondsFromGMT: 0), year: numbers[0],
            month: numbers[1], day: numbers[2])
        return numbers[0] > 0 && date.isValidDate
    }
}
