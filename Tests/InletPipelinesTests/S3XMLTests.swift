import InletCore
import InletTestSupport
import Testing

@testable import InletPipelines

/// The reader of S3's answers: strict, bounded, and never confused by what a stranger sends.
@Suite struct S3XMLTests {
    private static func read(_ text: String) throws(XMLReader.Fault) -> XMLAnswer {
        try XMLReader.read(Array(text.utf8))
    }

    @Test func `elements, text and children are there`() throws {
        let answer = try Self.read(
            """
            <?xml version="1.0" encoding="UTF-8"?>
            <!-- by hand -->
            <s3:List xmlns:s3="http://s3.example/" a='<"' b=">">
              <Key>a &amp; b &lt;&gt;&quot;&apos; &#65;&#x1F600;</Key><Empty/><Empty a="1" /><Key>second</Key>
              <Raw><![CDATA[<&amp;]]>x</Raw ><Deep><Size> 12</Size></Deep><Size>34</Size>
            </s3:List>
            <!-- end --> <?end?>
            """)
        #expect(answer.name == "List")
        #expect(answer.text(of: "Key") == "a & b <>\"' A😀")
        #expect(answer.all("Key").map(\.text) == ["a & b <>\"' A😀", "second"])
        #expect(answer.all("Empty").count == 2)
        #expect(answer.text(of: "Raw") == "<&amp;x")
        #expect(answer.integer("Size") == 34)
        #expect(answer.children.first { $0.name == "Deep" }?.integer("Size") == nil)
        #expect(answer.text(of: "Missing") == nil)
    }

    @Test func `a byte order mark and a lone element are fine`() throws {
        #expect(try XMLReader.read([0xEF, 0xBB, 0xBF] + Array("<a/>".utf8)).name == "a")
        #expect(try Self.read("<a>\u{1}é</a>").text == "\u{1}é")
    }

    static let broken: [(String, XMLReader.Fault)] = [
        ("", .malformed), ("text", .malformed), ("<", .malformed), ("<a", .malformed), ("<a>", .malformed),
        ("<a></b>", .malformed), ("</a>", .malformed), ("<a/><b/>", .malformed), ("<a/>x", .malformed),
        ("<a>&nbsp;</a>", .malformed), ("<a>&amp</a>", .malformed), ("<a>&#xD800;</a>", .malformed),
        ("<a>&#1114112;</a>", .malformed), ("<a>&#-1;</a>", .malformed), ("<a>&;</a>", .malformed),
        ("<a b=\"</a>", .malformed), ("< a/>", .malformed), ("<a><b></a></b>", .malformed), ("<:/>", .malformed),
        ("<a><![CDATA[x</a>", .malformed), ("<![CDATA[x]]><a/>", .malformed), ("<?xml", .malformed),
        ("<!DOCTYPE a><a/>", .doctype), ("<a><!ENTITY x 'y'></a>", .doctype), ("<!-- <a/>", .doctype),
        ("<!DOCTYPE l [<!ENTITY x SYSTEM \"file:///etc/passwd\">]><l>&x;</l>", .doctype),
        (String(repeating: "<a>", count: 17), .tooDeep),
        ("<a>" + String(repeating: "<b/>", count: 50_000) + "</a>", .tooMany),
    ]

    @Test(arguments: broken)
    func `what is not well-formed, or too much, is refused`(_ text: String, _ fault: XMLReader.Fault) {
        #expect(throws: fault) { try Self.read(text) }
    }

    @Test func `depth and number have room for every real answer`() throws {
        let deep = String(repeating: "<a>", count: 16) + String(repeating: "</a>", count: 16)
        #expect(try Self.read(deep).name == "a")
        let wide = "<a>" + String(repeating: "<b/>", count: 49_999) + "</a>"
        #expect(try Self.read(wide).children.count == 49_999)
    }

    @Test(arguments: 0..<300 as Range<UInt64>)
    func `no mutation of a real answer does harm`(_ seed: UInt64) {
        var generator = SeededGenerator(seed: seed)
        var bytes = Array(
            """
            <?xml version="1.0"?><ListPartsResult xmlns="http://s3/"><IsTruncated>true</IsTruncated><Part>\
            <PartNumber>1</PartNumber><ETag>&quot;a&#34;</ETag><Size>5</Size></Part><!-- c --></ListPartsResult>
            """.utf8)
        for _ in 0..<Int.random(in: 1...6, using: &generator) {
            let place = Int.random(in: 0..<bytes.count, using: &generator)
            switch Int.random(in: 0...3, using: &generator) {
            case 0: bytes[place] = UInt8.random(in: 0...255, using: &generator)
            case 1: bytes.remove(at: place)
            case 2: bytes.insert(contentsOf: "<>&;/!?\"'".utf8.shuffled(using: &generator).prefix(2), at: place)
            default: bytes = Array(bytes.prefix(place + 1))
            }
        }
        // It ends, and what it lets through is within its bounds.
        guard let answer = try? XMLReader.read(bytes) else { return }
        #expect(answer.children.count < bytes.count)
        #expect(answer.text.utf8.count <= 3 * bytes.count)
    }
}
