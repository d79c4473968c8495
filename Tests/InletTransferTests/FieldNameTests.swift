import Testing

@testable import InletTransfer

struct FieldNameTests {
    @Test(arguments: [
        ("ETag", "etag", true), ("etag", "etag", true), ("X-AMZ-Date", "x-amz-date", true), ("", "", true),
        ("ETag ", "etag", false), ("ETaG", "etam", false), ("E[ag", "e{ag", false), ("E@ag", "e`ag", false),
        ("ETäg", "etäg", true), ("ETÄG", "etäg", false),
    ]) func `names are the same in any case of ASCII letters`(_ name: String, _ lower: String, _ isSame: Bool) {
        #expect(FieldName.isSame(name, lower) == isSame)
    }

    @Test func `what a token is made of`() {
        let bytes = (UInt8.min...UInt8.max).filter(FieldName.isTokenByte)
        let tokens = "!#$%&'*+-.0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ^_`abcdefghijklmnopqrstuvwxyz|~"
        #expect(String(decoding: bytes, as: UTF8.self) == tokens)
    }

    @Test(arguments: ["", "a", "größer", String(repeating: "x", count: 1000)])
    func `bytes are those of the text`(_ text: String) {
        #expect(FieldName.bytes(of: text) { Array($0) } == Array(text.utf8))
    }

    @Test(arguments: [
        ("a/b c", "", "a%2Fb%20c"), ("a/b", "/", "a/b"), ("", "/", ""), ("-._~", "", "-._~"),
        ("ü\u{1}", "", "%C3%BC%01"),
    ]) func `what needs it is percent-encoded, with two digits`(_ text: String, _ kept: String, _ encoded: String) {
        #expect(Percent.encode(text[...], keeping: kept) == encoded)
        #expect(Percent.encode("x\(text)x".dropFirst().dropLast(), keeping: kept) == encoded)
    }
}
