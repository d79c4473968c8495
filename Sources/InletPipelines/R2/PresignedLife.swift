internal import FoundationEssentials
internal import InletCore
internal import InletTransfer

/// A presigned URL's own account of its life (AWS Signature Version 4, query parameters).
enum PresignedLife {
    /// Whether the URL has expired by our clock; nil when it does not say.
    static func hasExpired(_ url: HTTPURL, now: WallTime) -> Bool? {
        guard let date = url.queryItem("X-Amz-Date"), let life = url.queryItem("X-Amz-Expires").flatMap(Int64.init),
            let signed = time(date)
        else { return nil }
        return signed + .seconds(life) <= now
    }

    /// Parses `20261121T072000Z`.
    static func time(_ text: String) -> WallTime? {
        guard text.utf8.count == 16, text.hasSuffix("Z") else { return nil }
        let digits = text.filter(\.isNumber)
        guard digits.count == 14, let all = Int64(digits) else { return nil }
        let (date, clock) = all.quotientAndRemainder(dividingBy: 1_000_000)
        var components = DateComponents()
        components.year = Int(date / 10_000)
        components.month = Int(date / 100 % 100)
        components.day = Int(date % 100)
        components.hour = Int(clock / 10_000)
        components.minute = Int(clock / 100 % 100)
        components.second = Int(clock % 100)
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        return calendar.date(from: components).map {
            WallTime(milliseconds: Int64(($0.timeIntervalSince1970 * 1000).rounded()))
        }
    }
}
