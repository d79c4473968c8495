package import InletCore

/// An answer that arrived whole, whatever its status.
package struct HTTPResponse: Sendable {
    package var status: Int
    /// Those of the final answer, in their order; names as the server spelt them.
    package var headers: HTTPFields
    package var body: [UInt8]
    /// The server's certificate in PEM, for requests that ask for nothing else.
    var certificate: String?
    /// What of the request nobody may read in the answer.
    package var told = ToldSecrets()

    /// Takes our own credentials out of the answer's words. Whatever of them becomes a text for people passes it first.
    package var redactor: Redactor { redactor(also: []) }

    /// The same, for an answer that brings credentials itself.
    package func redactor(also secrets: [Secret]) -> Redactor { Redactor(told.all + secrets) }

    package init(status: Int, headers: HTTPFields = [], body: [UInt8] = []) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The value of the first field called `name`, in any case.
    package func header(_ name: String) -> String? {
        let wanted = name.lowercased()
        return headers.first { FieldName.isSame($0.name, wanted) }?.value
    }

    /// The server's clock when it answered (RFC 9110, section 6.6.1); nil when it does not say.
    package var date: WallTime? { header("Date").flatMap { HTTPDate.parse($0) } }

    /// How long the server asks us to wait (RFC 9110, section 10.2.3), at most a day; nil when it does not ask or
    /// cannot be understood.
    package func retryAfter(now: WallTime) -> Duration? {
        guard let value = header("Retry-After") else { return nil }
        let day = Duration.seconds(86_400)
        if !value.isEmpty, value.utf8.allSatisfy({ (0x30...0x39).contains($0) }) {
            return Int64(value).map { min(.seconds(min($0, 86_400)), day) } ?? day
        }
        return HTTPDate.parse(value).map { min(max($0 - now, .zero), day) }
    }
}

/// The three date formats that RFC 9110, section 5.6.7 asks recipients to read.
enum HTTPDate {
    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]

    static func parse(_ text: String) -> WallTime? {
        let words = text.split { " ,-".contains($0) }.map(String.init)
        switch words.count {
        // Sun Nov  6 08:49:37 1994
        case 5: return time(day: words[2], month: words[1], year: words[4], clock: words[3])
        // Sun, 06 Nov 1994 08:49:37 GMT and Sunday, 06-Nov-94 08:49:37 GMT
        case 6 where words[5] == "GMT":
            return time(day: words[1], month: words[2], year: words[3], clock: words[4])
        default: return nil
        }
    }

    private static func time(day: String, month: String, year: String, clock: String) -> WallTime? {
        let parts = clock.split(separator: ":", omittingEmptySubsequences: false).map { Int64($0) ?? -1 }
        guard let day = Int64(day), (1...31).contains(day), let index = months.firstIndex(of: month),
            let year = fullYear(year), parts.count == 3,
            (0...23).contains(parts[0]), (0...59).contains(parts[1]), (0...60).contains(parts[2])
        else { return nil }
        let days = daysSinceEpoch(year: year, month: Int64(index) + 1, day: day)
        return WallTime(milliseconds: (days * 86_400 + parts[0] * 3600 + parts[1] * 60 + parts[2]) * 1000)
    }

    private static func fullYear(_ text: String) -> Int64? {
        guard let year = Int64(text), year >= 0 else { return nil }
        switch text.utf8.count {
        case 4: return year
        case 2: return year < 70 ? 2000 + year : 1900 + year
        default: return nil
        }
    }

    /// Days from 1970-01-01 in the proleptic Gregorian calendar; years count from March so that leap days come last.
    private static func daysSinceEpoch(year: Int64, month: Int64, day: Int64) -> Int64 {
        let shifted = month <= 2 ? year - 1 : year
        let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
        return shifted * 365 + shifted / 4 - shifted / 100 + shifted / 400 + dayOfYear - 719_468
    }
}
