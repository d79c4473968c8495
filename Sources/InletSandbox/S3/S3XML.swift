import Hummingbird

/// The documents that S3 and its clients send each other.
enum S3XML {
    /// Leaves nothing where there is no value.
    private static func elements(_ values: KeyValuePairs<String, String?>) -> String {
        values.map { name, value in value.map { "<\(name)>\($0.escapedForXML)</\(name)>" } ?? "" }.joined()
    }

    static func element(_ name: String, _ values: KeyValuePairs<String, String?>) -> String {
        "<\(name)>\(elements(values))</\(name)>"
    }

    /// The whole document with `root` as its outermost element, and in it `values`, then `items`.
    static func document(
        _ root: String, _ values: KeyValuePairs<String, String?>, _ items: [String] = []
    ) -> Response {
        let text = """
            <?xml version="1.0" encoding="UTF-8"?>
            <\(root) xmlns="http://s3.amazonaws.com/doc/2006-03-01/">\(elements(values))\(items.joined())</\(root)>
            """
        return Response(SandboxReply(200, type: "application/xml", body: text))
    }

    /// The parts that the body of CompleteMultipartUpload lists, which is all the XML that a client sends.
    ///
    /// - Throws: `MalformedXML`.
    static func partList(_ body: String) throws(SandboxRefusal) -> [ListedPart] {
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

    private static let malformed = SandboxRefusal(
        400, "MalformedXML", "The body is not a list of parts as CompleteMultipartUpload has it.")
}
