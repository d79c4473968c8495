import InletCore
import InletTestSupport
import Testing

@testable import InletMedia

struct DateTextTests {
    @Test(arguments: [
        ("2026:11:21 07:08:09", "2026-11-21T07:08:09.000"), ("2026-11-21T07:08:09", "2026-11-21T07:08:09.000"),
        ("2026/11/21 07:08:09 ", "2026-11-21T07:08:09.000"), (" 2026.11.21 07:08:09", "2026-11-21T07:08:09.000"),
        ("2026-11-21T07:08:09Z", "2026-11-21T07:08:09.000Z"),
        ("2026-11-21T07:08:09+0100", "2026-11-21T07:08:09.000+01:00"),
        ("2026-11-21T07:08:09-03:30", "2026-11-21T07:08:09.000-03:30"),
        ("2026-11-21T07:08:09+09", "2026-11-21T07:08:09.000+09:00"),
        ("2026-11-21T07:08:09.25+0100", "2026-11-21T07:08:09.250+01:00"),
        ("2026-11-21T07:08:09,123456Z", "2026-11-21T07:08:09.123Z"),
        ("2026:11:21 07:08:60", "2026-11-21T07:08:59.000"),
        // A zone that is none, or not known, does not cost the date.
        ("2026-11-21T07:08:09+99:00", "2026-11-21T07:08:09.000"),
        ("2026-11-21T07:08:09-00:00", "2026-11-21T07:08:09.000"), ("2026:11:21 07:08:09 PM", "2026-11-21T07:08:09.000"),
    ])
    func `dates are read as cameras write them`(text: String, expected: String) {
        #expect(DateText.time(text.utf8)?.display == expected)
    }

    @Test(arguments: [
        "", " ", "    :  :     :  :  ", "0000:00:00 00:00:00", "2026:11:21", "2026:11:21 07:08", "2026:02:30 07:08:09",
        "2026:11:21 24:00:00", "21:11:2026 07:08:09", "2026:1:2 07:08:09", "2026:11:21 07:08:0", "20261121070809",
        "+026:11:21 07:08:09", "2026:11:21 ０7:08:09", "\u{0}2026:11:21 07:08:09",
    ])
    func `what is no date is none`(text: String) { #expect(DateText.time(text.utf8) == nil) }

    @Test(arguments: [
        ("+01:00", "5", "2026-11-21T07:08:09.500+01:00"), ("-08:00", "012", "2026-11-21T07:08:09.012-08:00"),
        ("Z", "98 ", "2026-11-21T07:08:09.980Z"), ("   :  ", "   ", "2026-11-21T07:08:09.000"),
        ("", "", "2026-11-21T07:08:09.000"), ("+1", "1234567", "2026-11-21T07:08:09.123"),
    ])
    func `fields of their own make a date exact`(offset: String, subSeconds: String, expected: String) {
        let time = DateText.time(
            "2026:11:21 07:08:09".utf8, subSeconds: Array(subSeconds.utf8), offset: Array(offset.utf8))
        #expect(time?.display == expected)
    }

    @Test(arguments: 0..<4)
    func `no text breaks the reader`(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let sound = Array("2026-11-21T07:08:09.25+01:00".utf8)
        for _ in 0..<2000 {
            var text = sound
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                let place = Int.random(in: 0..<text.count, using: &random)
                text[place] = UInt8.random(in: 0...255, using: &random)
            }
            text = Array(text.prefix(Int.random(in: 1...text.count, using: &random)))
            if let time = DateText.time(text, subSeconds: text, offset: text) {
                #expect(abs(time.offset ?? 0) < 86_400)
            }
        }
    }
}
