import HTTPTypes
import Hummingbird
import InletCore
import NIOCore

/// Elements of an answer, written in order.
struct S3XML {
    private(set) var text = ""

    /// Leaves nothing where there is no value.
    mutating func element(_ name: String, _ value: String?) {
        guard let value else { return }
        text += "<\(name)>\(value.escapedForXML)</\(name)>"
    }

    mutating func element(_ name: String, _ inner: (inout S3XML) -> Void) {
        var content = S3XML()
        inner(&content)
        text += "<\(name)>\(content.text)</\(name)>"
    }

    /// The whole document with `root` as its outermost element.
    static func document(_ root: String, _ inner: (inout S3XML) -> Void) -> Response {
        var content = S3XML()
        inner(&content)
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <\(root) xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\(content.text)</\(root)>
            """
        return Response(
            status: .ok, headers: [.contentType: "application/xml"],
            body: ResponseBody(byteBuffer: ByteBuffer(string: text)))
    }
}

/// Reads the body of CompleteMultipartUpload, which is all the XML that a client sends.
enum PartListXML {
    /// - Throws: `MalformedXML`.
    static func parse(_ body: String) throws(StoreError) -> [ListedPart] {
        guard let list = inner("CompleteMultipartUpload", of: body[...]) else { throw malformed }
        var parts: [ListedPart] = []
        var rest = list
        while let start = rest.firstRange(of: "<Part>") {
            guard let end = rest[start.upperBound...].firstRange(of: "</Part>") else { throw malformed }
            let item = rest[start.upperBound..<end.lowerBound]
            guard let number = inner("PartNumber", of: item).flatMap({ Int($0.filter { !$0.isWhitespace }) }),
                let etag = inner("ETag", of: item)
            else { throw malformed }
            parts.append(ListedPart(number: number, etag: unescaped(etag).filter { !$0.isWhitespace }))
            rest = rest[end.upperBound...]
        }
        guard !parts.isEmpty else { throw malformed }
        return parts
    }

    /// What stands between the tags of the first element `name`, whose start tag may have attributes.
    private static func inner(_ name: String, of text: Substring) -> Substring? {
        guard let open = text.firstRange(of: "<" + name),
            let start = text[open.upperBound...].firstIndex(of: ">"),
            let end = text[start...].firstRange(of: "</\(name)>")
        else { return nil }
        return text[text.index(after: start)..<end.lowerBound]
    }

    private static func unescaped(_ text: Substring) -> String {
        var text = String(text)
        for (name, value) in [("quot", "\""), ("#34", "\""), ("#x22", "\""), ("lt", "<"), ("gt", ">"), ("amp", "&")] {
            text = text.replacing("&\(name);", with: value)
        }
        return text
    }

    private static let malformed = StoreError(
        status: 400, code: "MalformedXML", message: "The body is not a list of parts as CompleteMultipartUpload has it."
    )
}
