import Foundation
import InletCore

extension WallTime {
    /// The civil clock.
    static var now: WallTime { WallTime(Date()) }

    init(_ date: Date) { self.init(milliseconds: Int64(date.timeIntervalSince1970 * 1000)) }

    /// As `Last-Modified` has it (RFC 9110, section 5.6.7).
    var httpDate: String {
        let formatter = DateFormatter()
        formatter.locale = Locale(identifier: "en_US_POSIX")
        formatter.timeZone = TimeZone(secondsFromGMT: 0)
        formatter.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        return formatter.string(from: Date(timeIntervalSince1970: Double(milliseconds) / 1000))
    }
}
