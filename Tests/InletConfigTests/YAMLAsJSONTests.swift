import InletConfig
import SystemPackage
import Testing

/// YAML data as JSON.
struct YAMLAsJSONTests {
    static let texts: [(String, String)] = [
        ("", "null"), ("# nothing\n", "null"), ("a: 1", #"{"a":1}"#), ("[]", "[]"), ("{}", "{}"),
        ("- [0, -1.5, 2e3]\n- [1, 2, 3]", "[[0,-1.5,2e3],[1,2,3]]"),
        (
            "a: yes\nb: true\nc: ~\nd:\ne: 'true'\nf: \"1\"",
            #"{"a":"yes","b":true,"c":null,"d":null,"e":"true","f":"1"}"#
        ),
        ("a: +7\nb: 007\nc: .5\nd: 1.\ne: 0x1F\nf: 0o17", #"{"a":7,"b":7,"c":0.5,"d":1.0,"e":31,"f":15}"#),
        ("a: .inf\nb: .nan\nc: 1.2.3\nd: 1e\ne: '-'", #"{"a":".inf","b":".nan","c":"1.2.3","d":"1e","e":"-"}"#),
        ("a: 2026-11-21", #"{"a":"2026-11-21"}"#), ("color: '#FF0000'", ##"{"color":"#FF0000"}"##),
        ("a: |\n  one\n  two\nb: \"\\u00e4 \\\"x\\\"\"", #"{"a":"one\ntwo\n","b":"ä \"x\""}"#),
        ("\u{FEFF}a: b", #"{"a":"b"}"#), ("a: {b: [{c: d}]}", #"{"a":{"b":[{"c":"d"}]}}"#),
        ("a: ${env:HOME}", #"{"a":"${env:HOME}"}"#),
        ("a: 123456789012345678901234567890", #"{"a":123456789012345678901234567890}"#),
    ]

    @Test(arguments: texts) func `YAML becomes the JSON that says the same`(_ yaml: String, _ json: String) throws {
        let converted = try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        #expect(String(decoding: converted, as: UTF8.self) == json)
    }

    static let refused: [(String, String)] = [
        ("a: 1\na: 2", "markers.yaml:2:1: key 'a' is given twice; it is already on line 1"),
        ("a: *x", "markers.yaml:1:4: aliases are not supported here; put text that begins with '*' in quotes"),
        ("a: &x 1", "markers.yaml:1:4: anchors are not supported here; put text that begins with '&' in quotes"),
        ("a: !!str 1", "markers.yaml:1:4: tags such as !!str are not supported; quote text instead"),
        ("<<: {a: 1}", "markers.yaml:1:1: merge keys ('<<') are not supported here"),
        ("[a]: 1", "markers.yaml:1:1: a key must be a plain word"),
        ("a: 1\n---\nb: 2", "markers.yaml:2:1: a second document begins here; one document is taken"),
        (String(repeating: "[", count: 65), "markers.yaml:1:65: values are nested deeper than 64 levels"),
    ]

    @Test(arguments: refused) func `what is not supported is refused with its place`(_ yaml: String, _ message: String)
    {
        let error = #expect(throws: ConfigError.self) {
            try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        }
        #expect(error?.description == message)
    }

    @Test func `bytes that are no text are refused`() {
        let error = #expect(throws: ConfigError.self) {
            try YAMLAsJSON.convert([0x61, 0x3A, 0x20, 0xFF], file: "markers.yaml")
        }
        #expect(error?.line == 1 && error?.message.contains("UTF-8") == true)
    }

    @Test func `a long list is as good as a short one`() throws {
        let yaml = (0..<20_000).map { "- [\($0), 0.25, -1]\n" }.joined()
        let json = try YAMLAsJSON.convert(Array(yaml.utf8), file: "markers.yaml")
        #expect(json.count { $0 == UInt8(ascii: "[") } == 20_001)
    }
}
