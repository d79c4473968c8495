import InletCore
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// What a file of markers may say, decided without a server.
struct RoboscopeMarkerRuleTests {
    private static let digest = Digest(.sha256, [UInt8](repeating: 0xAB, count: 32))

    private static func file(_ text: String) throws -> MarkerFile {
        try MarkerFile(Array(text.utf8), digest: digest)
    }

    private static let good = #"{"p1":[0,0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#

    static let files: [(String, Int, String?, String?)] = [
        ("[\(good)]", 1, nil, nil), (#"{"markers":[\#(good),\#(good)]}"#, 2, nil, nil),
        (#"{"space":"atrium","markers":[\#(good)]}"#, 1, "atrium", nil),
        (#"{"markers":[\#(good)],"space_key":"atrium","session":"6f1c-AB"}"#, 1, "atrium", "6f1c-AB"),
        (#"{"session":{"type":"repair"},"markers":[\#(good)],"exported":{"by":"x"}}"#, 1, nil, nil),
        ("\u{FEFF} [ \(good) , \(good) ]\n", 2, nil, nil),
    ]

    @Test(arguments: files) func `a list is read with what stands around it`(
        _ text: String, _ count: Int, _ space: String?, _ session: String?
    ) throws {
        let file = try Self.file(text)
        #expect(file.count == count && file.space == space && file.session == session)
    }

    static let wrong: [(String, String)] = [
        (#"{"p1":[0,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#, "marker 2: p1 has 2 numbers; three are needed"),
        (#"{"p1":[0,0,0],"p2":[1,0,0],"p3":[1,1,0]}"#, "marker 2: p4 is missing"),
        (
            #"{"p1":[0,"0",0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#,
            "marker 2: p1 holds something else than finite numbers"
        ),
        (
            #"{"p1":[0,1e999,0],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#,
            "marker 2: p1 holds something else than finite numbers"
        ),
        (#"{"p1":"0,0,0","p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0]}"#, "marker 2: p1 is no list of three numbers"),
        (and(#","color":"red"}"#), "marker 2: color is not like #FF8800"),
        (and(##","color":"#FF88"}"##), "marker 2: color is not like #FF8800"),
        (and(#","label":7}"#), "marker 2: label is no text"),
        (and(#","custom_props":[]}"#), "marker 2: custom_props is no object"),
        ("7", "marker 2: value is no object"),
    ]

    /// A good marker with more behind its corners.
    private static func and(_ more: String) -> String { good.dropLast() + more }

    @Test(arguments: wrong) func `one wrong marker refuses the file, by its number`(_ marker: String, _ reason: String)
    {
        let fault = #expect(throws: MarkerFile.Fault.self) { try Self.file("[\(Self.good),\(marker),\(Self.good)]") }
        #expect(fault?.reason == reason)
    }

    @Test(arguments: [
        ("", "line 1, column 1"), ("[", "line 1, column 2"), ("{\"markers\":[}", "line 1, column 13"),
        ("[]", "there are no markers in it"), ("{}", "there are no markers in it"), ("7", "is expected"),
        (#"{"markers":{}}"#, "'markers' is no list"), (#"{"marker":[]}"#, "there are no markers in it"),
        (#"{"space":7,"markers":[]}"#, "'space' is no text"),
        (#"{"session":"../x","markers":[]}"#, "'session' is no id"),
        (#"{"session":{"typ":"x"},"markers":[]}"#, "session: typ is no field of a session"),
    ]) func `a file that is none is refused`(_ text: String, _ reason: String) {
        let fault = #expect(throws: MarkerFile.Fault.self) { try Self.file(text) }
        #expect(fault?.reason.contains(reason) == true, "\(String(describing: fault))")
    }

    @Test func `many faults are counted, and ten shown`() {
        let text = "[" + [String](repeating: "7", count: 25).joined(separator: ",") + "]"
        let fault = #expect(throws: MarkerFile.Fault.self) { try Self.file(text) }
        #expect(fault?.reason.hasSuffix("marker 10: value is no object; and 15 more") == true)
    }

    @Test func `a marker goes out with everything but what the server gives`() throws {
        let marker =
            #"{"id":"x","version":3,"created_at":"t","details":{},"work_session_id":"old","label":"a","color":null,"#
            + #""p1":[0,0,1.250],"p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0],"extra":{"k":[1]},"custom_props":{"s":1}}"#
        let file = try Self.file("[\(Self.good),\(marker)]")
        let hex = String(repeating: "ab", count: 32)
        let sent = file.marker(1, session: "new")
        #expect(
            JSONValue.object(sent).text
                == #"{"custom_props":{"ingest_id":"\#(hex)#1","s":1},"extra":{"k":[1]},"label":"a","p1":[0,0,1.250],"#
                + #""p2":[1,0,0],"p3":[1,1,0],"p4":[0,1,0],"work_session_id":"new"}"#)
        #expect(file.ingestID(1) == "\(hex)#1" && file.index(of: "\(hex)#1") == 1)
        for other in ["\(hex)#2", "\(hex)#-1", "\(hex)#", "\(hex)", "x#1", "\(hex)#1x"] {
            #expect(file.index(of: other) == nil)
        }
    }

    @Test func `of equal copies the oldest stays, and what differs is nobody's copy`() {
        func copy(_ id: String, _ time: Int64?, _ corners: String = "c") -> MarkerImport.Copy {
            (id, time.map { WallTime(milliseconds: $0) }, corners)
        }
        #expect(MarkerImport.extras([copy("a", 1)]) == [])
        #expect(MarkerImport.extras([copy("a", 5), copy("b", 1), copy("c", 9)]) == ["a", "c"])
        #expect(MarkerImport.extras([copy("b", 1), copy("a", 1)]) == ["b"])
        #expect(MarkerImport.extras([copy("a", nil), copy("b", 2)]) == ["a"])
        #expect(MarkerImport.extras([copy("a", 1), copy("b", 2, "moved"), copy("c", 3)]) == ["c"])
    }
}
