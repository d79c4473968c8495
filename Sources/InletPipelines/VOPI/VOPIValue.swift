package import InletCore

/// JSON read without expectations: the server writes `{}`, `""` or 0 where a nullable field is not set, and its
/// generations differ in what they send. Nothing is lost: `plain` is what came.
package struct VOPIValue: Sendable, Equatable {
    package let plain: JSONValue

    package init(_ plain: JSONValue) { self.plain = plain }

    package static let null = VOPIValue(.null)

    /// The value of `body`; nil when it is empty or no JSON.
    package init?(_ body: [UInt8]) {
        guard let value = JSON.value(body) else { return nil }
        plain = value
    }

    /// The member called `name`; `.null` where there is none.
    package subscript(name: String) -> VOPIValue { VOPIValue(plain[name] ?? .null) }

    /// A text that is set: nil for `""`, `{}`, null and every other kind.
    package var text: String? { plain.string.flatMap { $0.isEmpty ? nil : $0 } }

    /// A number, also one that is written as text; nil for every other kind.
    package var number: Double? {
        plain.double ?? plain.string.flatMap { Double($0) }.flatMap { $0.isFinite ? $0 : nil }
    }

    /// A whole number; fractions are cut off.
    package var integer: Int? { number.flatMap { Int(exactly: $0.rounded(.towardZero)) } }

    package var boolean: Bool? { plain.boolean }

    /// The elements; none for every other kind.
    package var list: [VOPIValue] { plain.array.map { $0.map { VOPIValue($0) } } ?? [] }

    package var isList: Bool { plain.array != nil }

    /// The members; none for every other kind.
    package var members: [String: VOPIValue] { plain.object.map { $0.mapValues { VOPIValue($0) } } ?? [:] }

    package var isObject: Bool { plain.object != nil }

    /// A moment (ISO 8601, with or without a fraction of the second); nil for `""` and what is none.
    package var time: WallTime? { text.flatMap { WallTime(rfc3339: $0) } }

    /// The value where it is set: nil for null, `{}`, `[]` and `""`.
    package var unlessEmpty: VOPIValue? {
        switch plain {
        case .null, .object([:]), .array([]), .string(""): nil
        default: self
        }
    }

    /// Whether it is `{}` or `[]`: either stands for nothing.
    package var isEmptyOfAnyKind: Bool { (isObject || isList) && unlessEmpty == nil }

    /// The value where it is an object with members; nil for `{}`, and for the 0 and `""` that also stand for "not set".
    package var objectIfSet: VOPIValue? { isObject ? unlessEmpty : nil }

    /// Two levels of names over texts; what is not set is left out, an inner level that is empty stays.
    var links: [String: [String: String]] {
        members.filter { $0.value.isObject }.mapValues { $0.members.compactMapValues(\.text) }
    }
}
