/// What a marker must be like before it is sent: four corners of three finite numbers in metres, a colour `#RRGGBB`.
enum MarkerRules {
    static let corners = ["p1", "p2", "p3", "p4"]

    /// What is wrong with it, each continuing "the marker's …"; empty for one that can be sent.
    static func objections(to marker: JSONValue) -> [String] {
        guard let fields = marker.object else { return ["value is no object"] }
        var found = corners.compactMap { corner(fields[$0] ?? .null, $0) }
        if let color = fields["color"], color != .null, !isColor(color.string ?? "") {
            found.append("color is not like #FF8800")
        }
        if let label = fields["label"], label != .null, label.string == nil { found.append("label is no text") }
        for name in ["meta", "custom_props"] {
            if let value = fields[name], value != .null, value.object == nil { found.append("\(name) is no object") }
        }
        return found
    }

    private static func corner(_ value: JSONValue, _ name: String) -> String? {
        if value == .null { return "\(name) is missing" }
        guard let items = value.array else { return "\(name) is no list of three numbers" }
        guard items.count == 3 else { return "\(name) has \(items.count) numbers; three are needed" }
        return items.allSatisfy { $0.double != nil } ? nil : "\(name) holds something else than finite numbers"
    }

    static func isColor(_ text: String) -> Bool {
        text.utf8.count == 7 && text.hasPrefix("#") && text.dropFirst().allSatisfy { $0.isASCII && $0.isHexDigit }
    }
}
