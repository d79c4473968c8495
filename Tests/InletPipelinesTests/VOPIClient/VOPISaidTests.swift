import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// The three shapes of error bodies, and what is none of them.
@Suite struct VOPISaidTests {
    private static func said(_ body: String) -> VOPIErrorBody {
        VOPIErrorBody(HTTPResponse(status: 400, body: Array(body.utf8)))
    }

    @Test func `a code and a message are told apart from prose`() {
        let plain = Self.said(#"{"error":"NOT_FOUND","message":"Job x not found","statusCode":404}"#)
        #expect(plain.code == "NOT_FOUND" && plain.message == "Job x not found" && plain.details == [])
        let short = Self.said(#"{"error":"UNAUTHORIZED","message":"m"}"#)
        #expect(short.code == "UNAUTHORIZED" && short.message == "m")
        let spend = Self.said(#"{"success":false,"newBalance":0,"error":"Not enough credits"}"#)
        #expect(spend.code == nil && spend.message == "Not enough credits")
    }

    @Test func `details are read as a list of the schema's objections`() {
        let said = Self.said(
            """
            {"error":"VALIDATION_ERROR","message":"Request validation failed","statusCode":400,"details":[
            {"instancePath":"/expiresIn","schemaPath":"#/x","keyword":"maximum","params":{},"message":"must be <= 86400"},
            {"code":"too_big","message":"too long","path":["a",0,"b"]},{"keyword":"only"},7,"text",null]}
            """)
        #expect(said.details == ["/expiresIn must be <= 86400", "a/0/b too long", "text"])
        #expect(said.text.contains("must be <= 86400"))
    }

    @Test func `details are read as nested objects too`() {
        let said = Self.said(
            """
            {"error":"VALIDATION_ERROR","details":{"_errors":["all"],"config":{"_errors":[],"stack":
            {"_errors":["Expected object"]}},"expiresIn":{"_errors":["Expected integer","second"]},"odd":"word"}}
            """)
        #expect(
            said.details == [
                "all", "/config/stack Expected object", "/expiresIn Expected integer", "/expiresIn second", "/odd word",
            ])
    }

    @Test(arguments: [
        "", " ", "{", "[]", "null", "7", "<html><b>Bad</b> Gateway</html>", "{}", #"{"error":null}"#,
        #"{"error":{"code":1},"message":["x"],"details":7}"#, #"{"details":[[[]]]}"#,
        #"{"details":{"a":{"b":{"c":{}}}}}"#,
        "\u{0}\u{1}\u{FFFD}", #"{"error":"x"#,
    ])
    func `no body makes it fail`(_ body: String) {
        let said = Self.said(body)
        #expect(said.code == nil)
        #expect(said.details == [])
        #expect(!said.isUnknownRoute)
    }

    @Test func `nesting without end is cut`() {
        let deep = String(repeating: #"{"a":"#, count: 5000) + "{}" + String(repeating: "}", count: 5000)
        #expect(Self.said(#"{"error":"X","details":\#(deep)}"#).isJSON == false)
        let low = String(repeating: #"{"a":"#, count: 40) + #"{"_errors":["x"]}"# + String(repeating: "}", count: 40)
        #expect(Self.said(#"{"error":"X","details":\#(low)}"#).details == [])
    }

    @Test func `random bytes are never taken for a code`() {
        var generator = SeededGenerator(seed: 2401)
        for _ in 0..<500 {
            let body = (0..<Int.random(in: 0...60, using: &generator)).map { _ in
                UInt8.random(in: 0...255, using: &generator)
            }
            let said = VOPIErrorBody(HTTPResponse(status: 500, body: body))
            #expect(said.code == nil, "\(body)")
            #expect(said.text.utf8.count <= 2000)
        }
    }
}
