/// `window:` of a route — when deliveries of its big files may begin. One that is under way goes on.
package struct DeliveryWindow: Sendable, Hashable, Codable {
    package static let standardSize: Int64 = 1 << 30

    package var span: DaySpan
    /// Files of at least this size wait for it; smaller ones go at any time.
    package var above: Int64
    /// An IANA name; nil = the system's.
    package var zone: String?

    package init(_ span: DaySpan, above: Int64 = standardSize, zone: String? = nil) {
        self.span = span
        self.above = above
        self.zone = zone
    }

    package func concerns(size: Int64) -> Bool { size >= above }

    /// When it opens next; nil while it is open.
    package func opening(at time: WallTime) -> WallTime? {
        if isOpen(ZoneClock.local(time, zone: zone)) { return nil }
        // One that never opens, of days that a zone has left out, is asked again tomorrow.
        return nextChange(after: time) ?? time + .seconds(86_400)
    }

    /// When it opens or closes next.
    package func nextChange(after time: WallTime) -> WallTime? {
        WallSearch.nextChange(after: time, zone: zone, boundaries: [span.from, span.to]) { isOpen($0) }
    }

    /// For how long it has been closed; 0 while it is open. Of a window that opens once a week or more often.
    package func closedTime(until time: WallTime) -> Duration {
        if opening(at: time) == nil { return .zero }
        // Most open every day, and the past is searched from its beginning.
        for days in [1, 8] {
            let start = time + .seconds(-86_400 * days)
            var (last, next): (WallTime?, WallTime?) = (nil, nextChange(after: start))
            while let change = next, change <= time { (last, next) = (change, nextChange(after: change)) }
            if let last { return time - last }
        }
        return .seconds(8 * 86_400)
    }

    private func isOpen(_ local: LocalTime) -> Bool { span.contains(local.day, minute: local.minute) }

    /// Why a delivery waits.
    package var reason: String { "waits for its window (\(span.text))" }

    /// `22:00 to 06:00, for files from 1 GiB`.
    package var text: String { "\(span.text), for files from \(ByteText.format(above))" }
}
