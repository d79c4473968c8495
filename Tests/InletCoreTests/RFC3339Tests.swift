import InletCore
import Testing

/// Dates as servers write them.
struct RFC3339Tests {
    static let times: [(String, Int64)] = [
        ("2025-10-20T10:00:00Z", 1_760_954_400_000), ("2025-10-20T10:00:00.123Z", 1_760_954_400_123),
        ("2025-10-20T10:00:00.123456789Z", 1_760_954_400_123), ("2025-10-20T10:00:00.5Z", 1_760_954_400_500),
        ("2025-10-20t10:00:00z", 1_760_954_400_000), ("2025-10-20 10:00:00", 1_760_954_400_000),
        ("2025-10-20T12:00:00+02:00", 1_760_954_400_000), ("2025-10-20T12:00:00.25+0200", 1_760_954_400_250),
        ("2025-10-20T04:30:00-05:30", 1_760_954_400_000), ("1969-12-31T23:59:59Z", -1000),
        ("2024-02-29T00:00:00Z", 1_709_164_800_000), ("2016-12-31T23:59:60Z", 1_483_228_800_000),
    ]

    @Test(arguments: times) func `a date is read with and without fraction and offset`(_ text: String, _ time: Int64) {
        #expect(WallTime(rfc3339: text)?.milliseconds == time)
    }

    @Test(arguments: [
        "", "2025-10-20", "2025-10-20T10:00", "2025-13-20T10:00:00Z", "2025-02-29T10:00:00Z", "2025-10-20T24:00:00Z",
        "2025-10-20T10:60:00Z", "2025-10-20T10:00:61Z", "2025-10-20T10:00:00.Z", "2025-10-20T10:00:00+2",
        "2025-10-20T10:00:00+02:0", "2025-10-20T10:00:00 UTC", "2025-10-20X10:00:00Z", "20251020T100000Z",
        "+025-10-20T10:00:00Z", "2025-10-20T10:00:00+25:00", "zzzz-zz-zzTzz:zz:zzZ", "2025-10-20T10:00:00+02:00:00",
    ]) func `what is no date is none`(_ text: String) {
        #expect(WallTime(rfc3339: text) == nil)
    }

    @Test func `what we write comes back, to the second`() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<500 {
            let time = WallTime(milliseconds: Int64.random(in: 0..<253_402_300_800_000, using: &generator))
            #expect(WallTime(rfc3339: time.rfc3339) == time)
            let second = WallTime(milliseconds: time.milliseconds / 1000 * 1000)
            #expect(WallTime(rfc3339: time.rfc3339Seconds) == second, "\(time.rfc3339Seconds)")
            #expect(time.rfc3339Seconds.utf8.count == 20)
        }
    }
}
