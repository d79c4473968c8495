import Foundation
import InletCore
import InletTestSupport
import SystemPackage
import Testing

struct KeyTemplateTests {
    @Test(arguments: [
        ("", 0, "empty"), ("{name", 0, "not closed"), ("a}b", 1, "'}'"), ("x{captured}", 2, "needs a format"),
        ("{volume:3}", 7, "takes no"), ("{captured:yyyy@Mars}", 15, "time zone"), ("{captured:YYYY-MM-dd}", 10, "yyyy"),
        ("{captured:yyyy-'W'ww}", 10, "YYYY"), ("{captred:yyyy}", 1, "{captured}"),
        ("{nmae}", 1, "did you mean '{name}'"), ("{card.rol}", 1, "did you mean '{card.roll}'"),
        ("{camera:x}", 7, "takes no"), ("{card}", 1, "unknown field"), ("{}", 1, "unknown field"),
        ("{extention}", 1, "unknown field"),
        ("{folder}", 1, "folder[1]"), ("{folder[0]}", 8, "1 to"), ("{folder[x]}", 8, "1 to"),
        ("{sha256:0}", 8, "1 to 64"), ("{sha256:65}", 8, "1 to 64"), ("{name:3}", 5, "takes no"),
        ("{mtime}", 1, "needs a format"), ("{mtime:}", 1, "needs a format"),
        ("{now:yyyy@Nowhere/City}", 10, "time zone"), ("{mtime:yyyy-bb}", 12, "not a date field"),
        ("{mtime:yyyy 'open}", 12, "not closed"), ("{mtime:ddd}", 7, "at most"), ("{mtime:YYYY-MM-dd}", 7, "yyyy"),
        ("{mtime:yyyy-'W'ww}", 7, "YYYY"),
    ])
    func `a template that cannot be filled in is refused where it goes wrong`(text: String, offset: Int, word: String) {
        let error = #expect(throws: PatternError.self) { try KeyTemplate(text) }
        #expect(error?.offset == offset)
        #expect(error?.message.contains(word) == true, "\(error?.message ?? "")")
    }

    @Test(arguments: [
        ("{category}/{owner}/{epoch_ms}_{name}", "images/anna/1729446000000_My_Photo.JPG"),
        ("{stem}-{sha256:12}.{ext}", "My_Photo-abababababab.JPG"), ("{dir}/{seq}", "trips/rome_2024/7"),
        ("{folder[1]}|{folder[2]}|{folder[3]}", "trips|rome_2024|"), ("{{{name}}}", "{My_Photo.JPG}"),
        ("/a//b/./{name}", "a/b/My_Photo.JPG"), ("../{name}", "My_Photo.JPG"), ("a\\b\u{7}c", "a_b_c"),
        ("{mtime:yyyy/MM/dd@UTC}/{name}", "2024/10/20/My_Photo.JPG"),
        ("{now:yyyy-MM-dd'T'HH.mm@Asia/Tokyo}", "2024-10-21T02.40"),
        ("{mtime:HH}", "19"), ("{mtime:YYYY-'W'ww}/{mtime:yyyy-MM-dd}", "2024-W42/2024-10-20"),
    ])
    func `fields are filled in and the result is cleaned`(text: String, key: String) throws {
        #expect(try KeyTemplate(text).key(Self.sample) == key)
    }

    @Test func `an empty field drops its own folder`() throws {
        var fields = KeyFields(path: "README", modified: 0, category: "models", admitted: WallTime(milliseconds: 5))
        #expect(KeyTemplate.standard.key(fields) == "models/5_README")
        #expect(try KeyTemplate("a/{dir}/{stem}.{ext}").key(fields) == "a/README")
        #expect(try KeyTemplate("{owner}").key(fields) == "README")
        #expect(try KeyTemplate("{owner}-{category}/x").key(fields) == "-models/x")
        #expect(try KeyTemplate("x{owner}/{name}").key(fields) == "README")
        fields.owner = ".."
        #expect(KeyTemplate.standard.key(fields) == "models/5_README")
    }

    @Test func `the standard template is what it says`() throws {
        #expect(try KeyTemplate(KeyTemplate.standard.text) == .standard)
        #expect(KeyTemplate.standard.facts.isEmpty)
        #expect(try KeyTemplate("{sha256:8}/{seq}").facts == [.sha256, .sequence])
        #expect(try KeyTemplate("{camera}{card.roll}").facts == [.camera, .card(.roll)])
        #expect(try KeyTemplate("{card.camera}").facts == [.card(.camera), .camera])
    }

    @Test func `names that differ in bad bytes only keep different keys`() throws {
        func key(_ bad: [UInt8]) throws -> String {
            let path = FilePath(bytes: Array("d/caf".utf8) + bad + Array(".jpg".utf8))
            return try KeyTemplate("{name}").key(
                KeyFields(path: path, modified: 0, category: "", admitted: .init(milliseconds: 0)))
        }
        let (first, second) = (try key([0xE9]), try key([0xE8]))
        #expect(
            first.hasPrefix("caf%E9_") && first.hasSuffix(".jpg")
                && first.utf8.count == "caf%E9_01234567.jpg".utf8.count)
        #expect(first.dropFirst(7) != second.dropFirst(7))
        #expect(try key(Array("%E9".utf8)) == "caf%E9.jpg")
    }

    @Test func `text for a destination keeps spaces and slashes`() throws {
        var fields = Self.sample
        fields.owner = "a b\n../c"
        #expect(try KeyTemplate("/{owner} \\ {stem}").text(fields) == "/a b_../c \\ My Photo")
        #expect(try KeyTemplate("{folder[9]}").text(fields) == "")
    }

    @Test func `a number goes before the last extension`() {
        #expect(KeyTemplate.disambiguated("a/b.tar.gz", number: 2) == "a/b.tar_2.gz")
        #expect(KeyTemplate.disambiguated("a.b/c", number: 10) == "a.b/c_10")
        #expect(KeyTemplate.disambiguated(".env", number: 2) == ".env_2")
        let long = KeyTemplate.disambiguated(String(repeating: "é", count: 510) + ".jpg", number: 12345)
        #expect(long.utf8.count <= 1024 && long.hasSuffix("é_12345.jpg"))
        // What is a file's name stays one, for destinations that are folders.
        let name = String(repeating: "é", count: 125) + "n.mov"
        let numbered = KeyTemplate.disambiguated("a/b/" + name, number: 2)
        #expect(numbered == "a/b/" + String(repeating: "é", count: 124) + "_2.mov")
    }

    @Test func `any name gives a key that every store can bear`() throws {
        var generator = SeededGenerator(seed: 7)
        let templates = try ["{name}", "{dir}/{name}", "{owner}/{stem}.{ext}", "{folder[1]}/x/{dir}/{name}"].map(
            KeyTemplate.init)
        let pieces: [[UInt8]] = [
            [0xFF], [0xC3], Array("é".utf8), Array("e\u{301}".utf8), Array("..".utf8), Array("/".utf8),
            Array("\\".utf8), [7], [0x20], Array("\u{202E}".utf8), Array("日本".utf8), Array("a".utf8),
            Array(".jpg".utf8), Array("👩‍👩‍👧".utf8), Array("\u{338}".utf8), Array(repeating: 0x62, count: 200),
            Array(repeating: 0x2E, count: 300), Array("\u{1FEF}".utf8), Array("ᄀ".utf8), Array("ᅡ".utf8),
        ]
        for round in 0..<250 {
            let bytes = (0..<Int.random(in: 1...14, using: &generator)).flatMap { _ in
                pieces.randomElement(using: &generator) ?? []
            }
            let owner = String(decoding: bytes.reversed(), as: UTF8.self)
            let fields = KeyFields(
                path: FilePath(bytes: bytes), modified: 0, owner: owner, category: "c",
                admitted: WallTime(milliseconds: 1))
            for template in templates {
                let key = template.key(fields)
                #expect(isSound(key), "round \(round): \(DisplayText.escape(key))")
                #expect(key == template.key(fields))
                #expect(isSound(KeyTemplate.disambiguated(key, number: 2)))
            }
        }
    }

    private func isSound(_ key: String) -> Bool {
        let names = key.unicodeScalars.split(separator: "/", omittingEmptySubsequences: false).map { String($0) }
        let isNFC = key.precomposedStringWithCanonicalMapping.utf8.elementsEqual(key.utf8)
        let isClean = key.unicodeScalars.allSatisfy {
            !$0.properties.isWhitespace && $0.properties.generalCategory != .control && $0 != "\\"
        }
        return isNFC && isClean && (1...1024).contains(key.utf8.count)
            && !names.contains { ["", ".", ".."].contains($0) }
    }

    @Test func `a long name is cut at a character and keeps its extension`() throws {
        let name = String(repeating: "日", count: 400) + ".tar.jpeg"
        let fields = KeyFields(path: FilePath(name), modified: 0, category: "", admitted: WallTime(milliseconds: 0))
        let key = try KeyTemplate("{name}").key(fields)
        #expect(key == String(repeating: "日", count: 339) + ".jpeg")
    }

    private static let sample = KeyFields(
        path: "trips/rome 2024/My Photo.JPG", modified: 1_729_446_000_999_999_999, owner: "anna", category: "images",
        sha256: Digest(.sha256, Array(repeating: 0xAB, count: 32)), admitted: WallTime(milliseconds: 1_729_446_000_000),
        sequence: 7, zone: "Europe/Berlin")
}

struct CaptureTimeTests {
    private func text(_ template: String, _ captured: Captured?, zone: String? = "Europe/Berlin") throws -> String {
        // 2024-10-20T17:40:00Z
        let fields = KeyFields(
            path: "a.jpg", modified: 1_729_446_000_000_000_000, category: "images", admitted: WallTime(milliseconds: 0),
            captured: captured, zone: zone)
        return try KeyTemplate(template).text(fields)
    }

    private func time(
        _ year: Int, _ month: Int, _ day: Int, _ hour: Int = 0, _ minute: Int = 0, _ second: Int = 0,
        offset: Int64? = nil
    ) throws -> CaptureTime {
        try #require(
            CaptureTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second, offset: offset))
    }

    @Test(arguments: [
        // A clock whose zone is known is converted, one whose zone is not shows what it showed.
        (32_400 as Int64?, "{captured:yyyy-MM-dd HH.mm}", "2026-11-21 15.30"),
        (32_400, "{captured:yyyy-MM-dd HH.mm@Asia/Tokyo}", "2026-11-21 23.30"),
        (0, "{captured:yyyy-MM-dd HH.mm xxx}", "2026-11-22 00.30 +01:00"),
        (nil, "{captured:yyyy-MM-dd HH.mm xxx}", "2026-11-21 23.30 +01:00"),
        (nil, "{captured:yyyy-MM-dd HH.mm xxx@Asia/Tokyo}", "2026-11-21 23.30 +09:00"),
        (nil, "{captured:YYYY-'W'ww}/{name}", "2026-W47/a.jpg"),
    ])
    func `a date of capture is written in the template's zone`(
        offset: Int64?, template: String, expected: String
    ) throws {
        let captured = Captured.at(try time(2026, 11, 21, 23, 30, offset: offset), origin: "EXIF DateTimeOriginal")
        #expect(try text(template, captured) == expected)
    }

    @Test func `without a date of capture the mtime stands in`() throws {
        for captured in [nil, Captured.unknown] {
            #expect(try text("{captured:yyyy-MM-dd HH.mm}", captured) == "2024-10-20 19.40")
        }
        #expect(try KeyTemplate("{captured:yyyy}/{name}").facts == [.captured])
        #expect(try KeyTemplate("{mtime:yyyy}/{name}").facts.isEmpty)
    }

    @Test(arguments: [
        // The night when Berlin's clocks go forward, and the one when they go back; the skipped and the doubled hour
        // keep their reading.
        (3, 29, 1, 59, "01.59 +01:00"), (3, 29, 2, 30, "02.30 +0"), (3, 29, 3, 0, "03.00 +02:00"),
        (10, 25, 1, 59, "01.59 +02:00"), (10, 25, 2, 30, "02.30 +0"), (10, 25, 3, 0, "03.00 +01:00"),
    ])
    func `a local time keeps its reading through a change of clocks`(
        month: Int, day: Int, hour: Int, minute: Int, expected: String
    ) throws {
        let captured = Captured.at(try time(2026, month, day, hour, minute), origin: "")
        #expect(try text("{captured:HH.mm xxx}", captured).hasPrefix(expected))
    }

    @Test(arguments: [
        (2026, 2, 29, 0, 0, 0), (2100, 2, 29, 0, 0, 0), (2026, 0, 1, 0, 0, 0), (2026, 13, 1, 0, 0, 0),
        (2026, 4, 31, 0, 0, 0), (2026, 1, 0, 0, 0, 0), (2026, 1, 1, 24, 0, 0), (2026, 1, 1, 0, 60, 0),
        (2026, 1, 1, 0, 0, 61), (-1, 1, 1, 0, 0, 0), (10_000, 1, 1, 0, 0, 0), (2026, 1, 1, -1, 0, 0),
    ])
    func `what is on no calendar or clock is no time`(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int
    ) {
        #expect(CaptureTime(year: year, month: month, day: day, hour: hour, minute: minute, second: second) == nil)
    }

    @Test func `leap days and leap seconds are times, a whole day is no offset`() throws {
        #expect(try time(2024, 2, 29).display == "2024-02-29T00:00:00.000")
        #expect(try time(2000, 2, 29).display == "2000-02-29T00:00:00.000")
        #expect(try time(2016, 12, 31, 23, 59, 60).display == "2016-12-31T23:59:59.000")
        #expect(CaptureTime(year: 2026, month: 1, day: 1, hour: 0, minute: 0, second: 0, offset: 86_400) == nil)
    }

    @Test func `every day of four centuries is the day that it was written as`() throws {
        var generator = SeededGenerator(seed: 3)
        for _ in 0..<2000 {
            let wall = Int64.random(in: -11_000_000_000...6_000_000_000, using: &generator) * 1000
            let display = CaptureTime(instant: WallTime(milliseconds: wall)).display
            let digits = display.split { !$0.isNumber }.compactMap { Int($0) }
            #expect(
                try time(digits[0], digits[1], digits[2], digits[3], digits[4], digits[5]).wall == wall, "\(display)")
        }
    }

    @Test func `a display tells what is known of the zone`() throws {
        #expect(try time(2026, 11, 21, 7, 8, 9).display == "2026-11-21T07:08:09.000")
        #expect(try time(2026, 11, 21, 7, 8, 9, offset: 0).display == "2026-11-21T07:08:09.000Z")
        #expect(try time(2026, 11, 21, 7, 8, 9, offset: -12_600).display == "2026-11-21T07:08:09.000-03:30")
        #expect(CaptureTime(instant: WallTime(milliseconds: 5)).display == "1970-01-01T00:00:00.005Z")
    }

    @Test func `dates of clocks that were never set, and of the future, are not believed`() throws {
        // 2026-11-21T00:00:00Z
        let now = WallTime(milliseconds: 1_795_219_200_000)
        #expect(try time(2026, 11, 21).isPlausible(at: now))
        #expect(try time(2026, 11, 21, 14).isPlausible(at: now))
        #expect(try time(2026, 11, 22, 13, offset: 50_400).isPlausible(at: now))
        #expect(try !time(2026, 11, 22, 0, 1).isPlausible(at: now))
        #expect(try time(1990, 1, 1).isPlausible(at: now))
        for year in [0, 1904, 1970, 1980, 1989, 2027, 9999] { #expect(try !time(year, 6, 1).isPlausible(at: now)) }
        for extreme in [Int64.min, Int64.max] {
            #expect(!CaptureTime(instant: WallTime(milliseconds: extreme)).isPlausible(at: now))
        }
    }
}

struct DatePatternTests {
    @Test(arguments: [
        ("2024-12-30T12:00:00Z", "YYYY-'W'ww-e", "2025-W01-1"), ("2021-01-03T12:00:00Z", "YYYY-'W'ww-e", "2020-W53-7"),
        ("2027-01-01T00:00:00Z", "YYYY'W'ww yyyy", "2026W53 2027"), ("2024-02-29T00:00:00Z", "D", "60"),
        ("2026-11-21T07:08:09Z", "EEEE d MMMM y G", "Saturday 21 November 2026 AD"),
        ("2026-11-21T00:08:09Z", "h-K-k-H a", "12-0-24-0 AM"),
        ("2026-11-21T12:08:09Z", "hh''mm''ss.SSS", "12'08'09.000"),
        ("2026-11-21T07:08:09Z", "QQQ QQQQ EEEEEE MMMMM yy", "Q4 4th quarter Sa N 26"),
        ("1969-12-31T23:59:59Z", "yyyy-MM-dd HH:mm:ss", "1969-12-31 23:59:59"),
        ("2026-11-21T07:08:09Z", "yyyy'@'Z", "2026@+0000"),
        ("2026-11-21T07:08:09Z", "X XX XXX x xxx ZZZZZ", "Z Z Z +00 +00:00 Z"),
    ])
    func `dates are written as TR35 says`(date: String, format: String, expected: String) throws {
        #expect(try Self.text(try Date(date, strategy: .iso8601), format + "@UTC") == expected)
    }

    @Test func `the hour that comes twice keeps its offset`() throws {
        let before = try Date("2026-10-25T00:30:00Z", strategy: .iso8601)
        #expect(try Self.text(before, "HH:mmxxx@Europe/Berlin") == "02:30+02:00")
        #expect(try Self.text(before.addingTimeInterval(3600), "HH:mmxxx@Europe/Berlin") == "02:30+01:00")
        #expect(try Self.text(before, "yyyy-MM-dd@America/New_York") == "2026-10-24")
    }

    @Test func `random moments agree with the system's formatter`() throws {
        var generator = SeededGenerator(seed: 11)
        let zones = [
            "UTC", "Europe/Berlin", "America/St_Johns", "Asia/Kathmandu", "Pacific/Apia", "Australia/Lord_Howe",
        ]
        let formats = [
            "yyyy-MM-dd", "yyyy/MM/dd/HH-mm-ss.SSS", "YYYY-'W'ww", "yy.M.d.D", "EEE.EEEE.EEEEEE", "MMM.MMMM.MMMMM.LLL",
            "h.hh.K.KK.k.kk.a", "X.XX.XXX.x.xx.xxx", "Z.ZZZZ.ZZZZZ", "QQ.QQQ.QQQQ", "A", "G.GGGG.u",
        ]
        let formatter = DateFormatter()
        var calendar = Calendar(identifier: .iso8601)
        for zone in zones {
            calendar.timeZone = try #require(TimeZone(identifier: zone))
            formatter.calendar = calendar
            formatter.locale = Locale(identifier: "en_US_POSIX")
            formatter.timeZone = calendar.timeZone
            for format in formats {
                formatter.dateFormat = format
                for _ in 0..<25 {
                    let seconds = Int64.random(in: -900_000_000...4_000_000_000, using: &generator)
                    let date = Date(timeIntervalSince1970: Double(seconds) + 0.25)
                    let expected = formatter.string(from: date)
                    #expect(try Self.text(date, "\(format)@\(zone)") == expected, "\(format) \(zone) \(seconds)")
                }
            }
        }
    }

    private static func text(_ date: Date, _ format: String) throws -> String {
        let milliseconds = Int64((date.timeIntervalSince1970 * 1000).rounded())
        let fields = KeyFields(
            path: "x", modified: milliseconds * 1_000_000, category: "", admitted: WallTime(milliseconds: milliseconds))
        let text = try KeyTemplate("{now:\(format)}").text(fields)
        #expect(try KeyTemplate("{mtime:\(format)}").text(fields) == text)
        return text
    }
}

/// Weeks around New Year; expected values are the calendar's (ISO 8601: a week belongs to the year of its Thursday).
struct ISOWeekTests {
    @Test(arguments: [
        ((2020, 12, 27), "2020-W52-7"), ((2020, 12, 28), "2020-W53-1"), ((2020, 12, 31), "2020-W53-4"),
        ((2021, 1, 1), "2020-W53-5"), ((2021, 1, 2), "2020-W53-6"), ((2021, 1, 3), "2020-W53-7"),
        ((2021, 1, 4), "2021-W01-1"), ((2021, 12, 31), "2021-W52-5"), ((2022, 1, 2), "2021-W52-7"),
        ((2022, 1, 3), "2022-W01-1"), ((2023, 1, 1), "2022-W52-7"), ((2024, 1, 1), "2024-W01-1"),
        ((2024, 2, 29), "2024-W09-4"), ((2024, 12, 29), "2024-W52-7"), ((2024, 12, 30), "2025-W01-1"),
        ((2024, 12, 31), "2025-W01-2"), ((2025, 12, 28), "2025-W52-7"), ((2025, 12, 29), "2026-W01-1"),
        ((2026, 1, 1), "2026-W01-4"), ((2026, 1, 4), "2026-W01-7"), ((2026, 1, 5), "2026-W02-1"),
        ((2026, 12, 27), "2026-W52-7"), ((2026, 12, 28), "2026-W53-1"), ((2026, 12, 31), "2026-W53-4"),
        ((2027, 1, 3), "2026-W53-7"), ((2027, 1, 4), "2027-W01-1"), ((2000, 1, 1), "1999-W52-6"),
        ((2004, 12, 31), "2004-W53-5"), ((2005, 1, 2), "2004-W53-7"), ((2008, 12, 29), "2009-W01-1"),
    ])
    func `the year of the week goes with the week`(date: (Int, Int, Int), expected: String) throws {
        let time = try #require(CaptureTime(year: date.0, month: date.1, day: date.2, hour: 23, minute: 59, second: 59))
        let fields = KeyFields(
            path: "x", modified: time.wall * 1_000_000, category: "", admitted: WallTime(milliseconds: time.wall),
            captured: .at(time, origin: ""))
        for field in ["mtime", "now", "captured"] {
            #expect(try KeyTemplate("{\(field):YYYY-'W'ww-e@UTC}").text(fields) == expected)
        }
    }
}

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

/// Labels of strangers' cards as names of folders.
struct FolderNameTests {
    @Test(arguments: [
        ("EOS_DIGITAL", "EOS_DIGITAL"), ("My Card", "My_Card"), ("../../etc", "_._.._etc"), (".hidden", "_hidden"),
        ("a/b\\c", "a_b_c"), ("x\u{202E}y\nz", "x_y_z"), ("", nil), (".", nil), ("..", nil), ("/", "_"),
        ("Ä\u{1F3A5}", "Ä\u{1F3A5}"),
        (String(repeating: "ä", count: 100), String(repeating: "ä", count: 32)),
    ])
    func `a label is one visible folder, and leads nowhere else`(_ label: String, _ name: String?) {
        #expect(KeySanitizer.folderName(label) == name)
    }
}
