internal import Foundation
internal import InletCore

/// How a report writes numbers and dates: ISO 8601 where the agent writes it, a person's locale where a command prints it.
package struct ReportStyle: Sendable {
    private let times: Locale?
    private let numbers: Locale?

    /// RFC 3339 and a decimal point.
    package static let iso = ReportStyle(times: nil, numbers: nil)

    private init(times: Locale?, numbers: Locale?) { (self.times, self.numbers) = (times, numbers) }

    /// nil for a locale that ICU does not know.
    ///
    /// - Parameter name: `de_DE`, `de_DE.UTF-8`, or `C`.
    package init?(locale name: String) {
        if Self.isPlain(name) {
            self = .iso
        } else {
            guard let locale = Self.locale(name) else { return nil }
            self.init(times: locale, numbers: locale)
        }
    }

    /// By `LC_ALL`, else `LC_TIME` and `LC_NUMERIC`, else `LANG` (POSIX, section 8.2); ISO where these name no known locale.
    package init(environment: (String) -> String?) {
        func locale(_ category: String) -> Locale? {
            let names = ["LC_ALL", category, "LANG"].lazy.compactMap(environment)
            return names.first { !$0.isEmpty }.flatMap { Self.isPlain($0) ? nil : Self.locale($0) }
        }
        self.init(times: locale("LC_TIME"), numbers: locale("LC_NUMERIC"))
    }

    private static func bare(_ name: String) -> String { String(name.prefix { $0 != "." && $0 != "@" }) }
    private static func isPlain(_ name: String) -> Bool { ["C", "POSIX"].contains(bare(name)) }

    private static func locale(_ name: String) -> Locale? {
        let bare = bare(name).replacing("-", with: "_")
        return Locale.availableIdentifiers.contains(bare) ? Locale(identifier: bare) : nil
    }

    /// A moment in RFC 3339; another text stays as it is.
    func time(_ text: String) -> String {
        guard let times, let time = WallTime(rfc3339: text) else { return text }
        let date = Date(timeIntervalSince1970: Double(time.milliseconds) / 1000)
        return date.formatted(Date.FormatStyle(date: .abbreviated, time: .standard, locale: times))
    }

    func number(_ count: some BinaryInteger) -> String {
        numbers.map { Int64(count).formatted(.number.locale($0)) } ?? "\(count)"
    }

    /// `4.1 GiB`
    func size(_ bytes: Int64) -> String {
        ByteText.format(bytes).replacing(".", with: numbers?.decimalSeparator ?? ".")
    }
}
