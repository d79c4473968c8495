import Foundation
import InletCore
import InletTestSupport
import Testing

@testable import InletPipelines

/// What may go with a file, and how it is written into a form.
@Suite struct GigHiveFieldTests {
    private static let defaults = [
        "label": "clip", "event_date": "2026-11-21", "org_name": "Band", "event_type": "band",
    ]

    private static func fields(_ given: [String: String], isGuest: Bool = false) throws(SettingFault)
        -> [String: String]
    {
        let fields = try GigHiveFields(given, defaults: defaults, isGuest: isGuest)
        return Dictionary(uniqueKeysWithValues: fields.values.map { ($0.name, $0.value) })
    }

    private static func fault(_ given: [String: String], isGuest: Bool = false) -> String? {
        do throws(SettingFault) {
            _ = try fields(given, isGuest: isGuest)
            return nil
        } catch { return error.key }
    }

    @Test func `what is missing or empty has its default, and optional fields stay out`() throws {
        #expect(try Self.fields([:]) == Self.defaults)
        #expect(try Self.fields(["label": " \n", "org_name": "", "rating": "", "notes": " "]) == Self.defaults)
    }

    @Test func `all fields arrive cleaned as the server cleans them`() throws {
        let given = [
            "label": "  Song one ", "event_date": "2024-02-29", "org_name": " The  Cafe\u{301}\t Band ",
            "event_type": "wedding", "participants": "Ann, Ben", "keywords": "live", "location": "Hall", "rating": "9",
            "notes": "two\nlines", "colour": "another destination's",
        ]
        var expected = given
        expected["colour"] = nil
        expected["label"] = "Song one"
        expected["org_name"] = "The Caf\u{E9} Band"
        let cleaned = try Self.fields(given)
        #expect(cleaned == expected)
        #expect(cleaned["org_name"]?.unicodeScalars.count == 13)
    }

    static let wrong: [(String, String)] = [
        ("event_date", "2026-02-29"), ("event_date", "1900-02-29"), ("event_date", "2026-13-01"),
        ("event_date", "2026-00-10"), ("event_date", "2026-04-31"), ("event_date", "2026-01-00"),
        ("event_date", "2026-1-1"), ("event_date", "26-01-01"), ("event_date", "2026/01/01"),
        ("event_date", "20260101"), ("event_date", "2026-01-01T00:00"), ("event_date", "٢٠٢٦-٠١-٠١"),
        ("event_date", "0999-01-01"), ("event_date", "-026-01-01"), ("event_date", "today"),
        ("event_type", "concert"), ("event_type", "Band"), ("event_type", "weddings"), ("rating", "10"),
        ("rating", "-1"), ("rating", "4.5"), ("rating", "٣"), ("rating", "five"), ("rating", "00"),
        ("label", String(repeating: "x", count: 256)), ("org_name", String(repeating: "x", count: 129)),
        ("location", String(repeating: "x", count: 256)),
    ]

    @Test(arguments: wrong) func `what the server would refuse is refused here`(_ name: String, _ value: String) {
        #expect(Self.fault([name: value]) == name)
    }

    static let right: [(String, String)] = [
        ("event_date", "2000-02-29"), ("event_date", "1000-01-01"), ("event_date", "9999-12-31"),
        ("event_type", "band"), ("event_type", "wedding"), ("event_type", "other"), ("rating", "0"), ("rating", "9"),
        ("label", String(repeating: "x", count: 255)), ("label", String(repeating: "é", count: 255)),
        ("label", "y"), ("org_name", String(repeating: "日", count: 128)),
        ("location", String(repeating: "é", count: 255)),
    ]

    @Test(arguments: right) func `what the server takes is taken`(_ name: String, _ value: String) throws {
        #expect(try Self.fields([name: value])[name] == value)
    }

    @Test func `a guest gives a label of so many bytes, and nothing else`() throws {
        #expect(try Self.fields(["label": "a", "event_date": "nonsense"], isGuest: true) == ["label": "a"])
        #expect(Self.fault(["label": String(repeating: "é", count: 128)], isGuest: true) == "label")
        #expect(try Self.fields(["label": String(repeating: "é", count: 127)], isGuest: true).count == 1)
    }

    @Test func `real dates are those of the calendar, for every day of 400 years`() throws {
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = try #require(TimeZone(identifier: "UTC"))
        var found = 0
        for year in 1800..<2200 {
            for month in 0...13 {
                for day in [0, 1, 28, 29, 30, 31, 32] {
                    let text = String(format: "%04d-%02d-%02d", year, month, day)
                    let components = DateComponents(calendar: calendar, year: year, month: month, day: day)
                    #expect(GigHiveFields.isDate(text) == components.isValidDate, "\(text)")
                    found += 1
                }
            }
        }
        #expect(found == 400 * 14 * 7)
    }

    @Test func `every default is a template, and every field has a sentence`() throws {
        for spec in GigHiveFields.specs {
            #expect(!spec.summary.isEmpty)
            if let text = spec.defaultText { #expect(try KeyTemplate(text).text == text) }
        }
        #expect(FieldSpec.filled([:], GigHiveFields.specs).count == 4)
    }

    // MARK: - Files

    @Test(arguments: [
        ("a.mp4", true), ("a.MOV", true), ("a.ifo", true), ("a.flac", true), ("a.txt", false), ("a", false),
        (".mp4", false), ("a.mp4.exe", false), ("a.", false), ("a.mp5", false),
    ]) func `only audio and video are taken, by their extension`(_ name: String, _ isTaken: Bool) {
        #expect((GigHivePipeline.objection(to: FileName(bytes: name.utf8)) == nil) == isTaken)
    }

    @Test func `every extension that is taken has a type to declare`() {
        #expect(GigHivePipeline.objection(to: FileName(bytes: "a.mp5".utf8))?.contains("did you mean") == true)
        let words =
            "mp3 wav flac aac m4a m4p aif aifc aiff ogg oga au m2a wma mp4 mov mkv webm m4v avi mpg mpeg ts m2t m2ts ogv "
            + "mxf flv rm rmvb rv wmv vob m2v"
        for word in words.split(separator: " ").map(String.init) {
            #expect(GigHivePipeline.takes(word))
            let type = GigHivePipeline.declaredType(word, mediaType: MediaType.byExtension(word))
            #expect(type != MediaType.unknown, "\(word)")
        }
        #expect(GigHivePipeline.declaredType("mp4", mediaType: "video/mp4") == "video/mp4")
    }

    // MARK: - The form

    @Test func `a form is what RFC 7578 says`() {
        let form = FormData(
            fields: [("label", "a\r\nb\"c"), ("notes", "")], fileField: "file", fileName: Array("x.mp4".utf8),
            mediaType: "video/mp4", boundary: "B")
        let header =
            "--B\r\nContent-Disposition: form-data; name=\"label\"\r\n\r\na\r\nb\"c\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"notes\"\r\n\r\n\r\n"
            + "--B\r\nContent-Disposition: form-data; name=\"file\"; filename=\"x.mp4\"\r\n"
            + "Content-Type: video/mp4\r\n\r\n"
        #expect(String(decoding: form.header, as: UTF8.self) == header)
        #expect(String(decoding: form.footer, as: UTF8.self) == "\r\n--B--\r\n")
        #expect(form.contentType == "multipart/form-data; boundary=B")
    }

    @Test func `a boundary that a value holds is replaced`() {
        let form = FormData(
            fields: [("label", "x--B1--")], fileField: "file", fileName: [0x61], mediaType: "video/mp4", boundary: "B1")
        #expect(form.boundary != "B1")
        #expect((1...70).contains(form.boundary.utf8.count))
        #expect(FormData.randomBoundary() != FormData.randomBoundary())
    }

    static let names: [([UInt8], String)] = [
        (Array("plain name.mp4".utf8), "plain name.mp4"), (Array("größe 日本.mp4".utf8), "größe 日本.mp4"),
        (Array("a\"b.mp4".utf8), "a%22b.mp4"), (Array("a\r\nX: y.mp4".utf8), "a%0D%0AX: y.mp4"),
        (Array("a\u{7F}\t.mp4".utf8), "a%7F%09.mp4"), ([0x61, 0xFF, 0xC3, 0x2E, 0x6D], "a%FF%C3.m"),
        (Array("100%.mp4".utf8), "100%.mp4"), (Array("back\\slash;.mp4".utf8), "back\\slash;.mp4"),
    ]

    @Test(arguments: names) func `a name stays within its quotes`(_ name: [UInt8], _ written: String) {
        #expect(String(decoding: FormData.escaped(name), as: UTF8.self) == written)
    }

    @Test(arguments: 0..<200 as Range<UInt64>) func `no name adds a line or ends its quotes`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        let name = (0..<Int.random(in: 1...60, using: &generator)).map { _ in
            UInt8.random(in: 1...255, using: &generator)
        }
        let escaped = FormData.escaped(name)
        #expect(!escaped.contains { $0 < 0x20 || $0 == UInt8(ascii: "\"") })
        #expect(String(validating: escaped, as: UTF8.self) != nil)
    }
}
