internal import InletCore

/// Text in XML 1.0 documents.
enum XMLText {
    /// The text of `bytes` if XML 1.0 (section 2.2) can hold it: UTF-8 without control characters but tab, line feed and
    /// carriage return, and without the two non-characters.
    static func writable(_ bytes: [UInt8]) -> String? {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let isWritable = text.unicodeScalars.allSatisfy { scalar in
            switch scalar.value {
            case 0x9, 0xA, 0xD: true
            case 0..<0x20, 0xFFFE, 0xFFFF: false
            default: true
            }
        }
        return isWritable ? text : nil
    }

    /// The text as content of an element or an attribute. A reader turns a raw carriage return into a line feed, and both
    /// into a space in attributes; as references they stay.
    static func escape(_ text: String) -> String {
        var result = ""
        result.reserveCapacity(text.utf8.count)
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\r": result += "&#13;"
            case "\n": result += "&#10;"
            case "\t": result += "&#9;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// `<name>text</name>`, `depth` steps of two spaces in.
    static func element(_ depth: Int, _ name: String, _ attributes: [(String, String)] = [], _ text: String) -> String {
        "\(opening(depth, name, attributes))\(escape(text))</\(name)>\n"
    }

    static func opening(_ depth: Int, _ name: String, _ attributes: [(String, String)] = []) -> String {
        let list = attributes.map { " \($0.0)=\"\(escape($0.1))\"" }.joined()
        return "\(String(repeating: "  ", count: depth))<\(name)\(list)>"
    }
}
