import Foundation
import InletCore
import InletTestSupport
import Testing

struct RedactorTests {
    private static let secrets = [
        "hunter22", "tok/en+\"1\" <é😀>&'%41\\n", "correct horse battery", "eyJhbGciOiJIUzI1NiJ9.e30.x_y-z",
    ]

    /// As programs write a value; each of these is undone by its reader.
    private static func spellings(_ text: String) -> [String] {
        let base = Data(text.utf8).base64EncodedString()
        let json = String(
            decoding: Data((try? JSONEncoder().encode(text)) ?? Data()).dropFirst().dropLast(), as: UTF8.self)
        let percent = text.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
        let units = text.utf16.map { "\\u" + String(format: "%04X", $0) }.joined()
        let numbers = text.unicodeScalars.map { "&#\($0.value);" }.joined()
        func page(_ text: String) -> String {
            text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\"", with: "&quot;")
        }
        let html = page(text)
        return [
            text, base, base.replacing("/", with: "\\/"), base.replacing("+", with: "-").replacing("/", with: "_"),
            json, percent, percent.replacing("%2F", with: "%2f"), percent.replacing("%20", with: "+"),
            percent.replacing("%", with: "%25"),
            units, units.replacing("\\", with: "\\\\"), numbers, numbers.replacing("&", with: "&amp;"), html,
            html.replacing("&", with: "&amp;"), page(json),
            json.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? "", page(units),
            json.replacing("\\", with: "\\\\\\"),
        ]
    }

    @Test(arguments: secrets)
    func `a credential is hidden in each of its spellings`(_ secret: String) {
        let redactor = Redactor([Secret(secret), Secret("another one")])
        for spelling in Self.spellings(secret) {
            let said = redactor.redacted("the key '\(spelling)' is unknown")
            #expect(said.hasPrefix("the key '***") && said.hasSuffix("' is unknown"), "\(spelling): \(said)")
            #expect(!said.contains(spelling.dropFirst(2)))
        }
    }

    @Test(arguments: secrets)
    func `a login is hidden in base64 whatever its user is called`(_ password: String) {
        let redactor = Redactor([Secret(password)])
        for user in ["", "u", "up", "ups", "uploader"] {
            let word = Data("\(user):\(password)".utf8).base64EncodedString()
            let left = redactor.redacted("Basic \(word)").dropFirst(6).split(separator: "***").joined()
            // The user's characters, and at each side one that belongs to both.
            #expect(left.count <= (user.utf8.count + 1) * 4 / 3 + 4, "\(left)")
        }
    }

    @Test func `one that a cut has left without its end is hidden too`() {
        let redactor = Redactor([Secret("tok\"en-canary-8813")])
        for spelling in ["tok\"en-canary-8813", "tok\\\"en-canary-8813", "tok%22en%2Dcanary%2D8813"] {
            for count in 0...spelling.count {
                let said = redactor.redacted("key " + spelling.prefix(count))
                #expect(said.count <= 4 + 6, "\(said)")
                #expect(!said.contains("en-c") && !said.contains("en%2"))
            }
        }
    }

    @Test func `other words stay as they are`() {
        let redactor = Redactor([Secret("hunter22"), Secret("abc"), Secret("")])
        for text in ["", "hunter2 abc", "a hunter 22", "%41 \\u0041 &amp; + %", "\\", "&", "%2", "hun"] {
            #expect(redactor.redacted(text) == text)
        }
        #expect(Redactor([]).redacted([0xFF, 0x00]) == [0xFF, 0x00])
        #expect(redactor.redacted([0xFF] + Array("hunter22".utf8) + [0xFE]) == [0xFF, 0x2A, 0x2A, 0x2A, 0xFE])
    }

    @Test func `the longer of two that begin alike is hidden whole`() {
        let redactor = Redactor([Secret("canary"), Secret("canary-and-more")])
        #expect(redactor.redacted("canary-and-more, canary-and") == "***, ***")
    }

    @Test func `no text makes it fail or grow without bound`() {
        var generator = SeededGenerator(seed: 3)
        let redactor = Redactor([Secret("%41%41\\u0041"), Secret("&amp;&#x26;"), Secret("++++")])
        let pieces = ["%", "25", "41", "\\", "u0041", "u", "&", "amp;", "#x26;", "#", ";", "+", "d83d", "\u{FFFD}"]
        for _ in 0..<3000 {
            let count = Int.random(in: 0...40, using: &generator)
            let text = (0..<count).map { _ in pieces.randomElement(using: &generator) ?? "" }.joined()
            #expect(redactor.redacted(text).utf8.count <= text.utf8.count)
        }
    }
}
