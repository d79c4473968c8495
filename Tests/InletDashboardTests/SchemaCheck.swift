import Foundation

@testable import InletDashboard

/// Holds a value against a schema of the document. Stricter than JSON Schema: a key that the document does not name is a fault
/// too, unless it says that there may be more.
struct SchemaCheck {
    let schemas: [String: InletDashboard.JSONValue]

    init(_ document: InletDashboard.JSONValue) {
        schemas = document["components"]?["schemas"]?.object ?? [:]
    }

    func faults(_ value: InletDashboard.JSONValue, _ schema: InletDashboard.JSONValue, at place: String = "$")
        -> [String]
    {
        if case .text(let reference)? = schema["$ref"] {
            let name = String(reference.split(separator: "/").last ?? "")
            guard let named = schemas[name] else { return ["\(place): no schema \(name)"] }
            return faults(value, named, at: place)
        }
        if case .list(let words)? = schema["enum"], !words.contains(value) {
            return ["\(place): \(value) is no word of it"]
        }
        guard case .text(let type)? = schema["type"] else { return [] }
        switch (type, value) {
        case ("string", .text(let text)):
            let isTime = schema["format"] == .text("date-time")
            return isTime && text.firstMatch(of: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/) == nil ? ["\(place): no time"] : []
        case ("integer", .integer), ("number", .integer), ("number", .number), ("boolean", .flag): return []
        case ("array", .list(let items)):
            let item = schema["items"] ?? .object([:])
            return items.enumerated().flatMap { faults($1, item, at: "\(place)[\($0)]") }
        case ("object", .object(let object)): return faults(object, schema, at: place)
        default: return ["\(place): \(value) is no \(type)"]
        }
    }

    private func faults(
        _ object: [String: InletDashboard.JSONValue], _ schema: InletDashboard.JSONValue, at place: String
    ) -> [String] {
        let properties = schema["properties"]?.object ?? [:]
        var found: [String] = []
        if case .list(let required)? = schema["required"] {
            for case .text(let name) in required where object[name] == nil { found.append("\(place): no \(name)") }
        }
        for (name, value) in object {
            if let property = properties[name] ?? schema["additionalProperties"] {
                found += faults(value, property, at: "\(place).\(name)")
            } else {
                found.append("\(place): \(name) is not described")
            }
        }
        return found
    }
}

extension InletDashboard.JSONValue {
    subscript(_ key: String) -> InletDashboard.JSONValue? { object?[key] }

    var object: [String: InletDashboard.JSONValue]? { if case .object(let object) = self { object } else { nil } }

    static func read(_ text: String) throws -> InletDashboard.JSONValue {
        try JSONDecoder().decode(InletDashboard.JSONValue.self, from: Data(text.utf8))
    }
}
