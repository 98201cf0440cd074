"""What a mended program may import: output and choices that stay in the graph. Knows torch and nothing else of ours.

A rewrite turns an output call into `emit`, argument for argument, and nothing else changes::

    print("y", y.sum(), file=sys.stderr)      ->  emit(print, "y", y.sum(), file=sys.stderr)
    logger.warning_once("bad %s", y)          ->  emit(logger.warning_once, "bad %s", y)
    warnings.warn("careful", stacklevel=2)    ->  emit(warnings.warn, "careful", stacklevel=2)
    tqdm.write(f"loss {loss:.3f}")            ->  emit(tqdm.write, f"loss {loss:.3f}")

Output that depends on a tensor hands the condition on, which eager code asks::

    if y.sum() > 0: print("positive", y)      ->  emit_if(y.sum() > 0, print, "positive", y)

Where an argument may raise, it is made only if the condition holds::

    if bad.any(): print(rows[bad][0])         ->  emit_when(bad.any(), print, lambda: (rows[bad][0],))

An argument that itself breaks the graph becomes `later(function, *arguments)`, a call made when the output happens::

    print("n", n.item())                      ->  emit(print, "n", later(n.item))
    print("n", int(n), x.tolist())            ->  emit(print, "n", later(int, n), later(x.tolist))
    logger.info("loss %.3f" % loss)           ->  emit(logger.info, later("loss %.3f".__mod__, loss))
    print(f"loss {loss.item():.3f}")          ->  emit(print, later("loss {:.3f}".format, later(loss.item)))
    print("a " + str(y))                      ->  emit(print, later("a ".__add__, later(str, y)))

Tensors, shapes, numbers, strings, f-strings with tensors in them, None, dtypes, lists, tuples, named tuples and dicts
of these need no `later`. What `emit` cannot carry (a user's object, a module, an array) still prints: the call then
breaks the graph, as the original line did.

A branch on a tensor becomes `select`, whose sides are computed both, while compiling only, where their results agree::

    if y.sum() > 0: h = y * 2                 ->  h = select(y.sum() > 0, lambda: y * 2, lambda: y + 1)
    else: h = y + 1

A function that only NumPy or plain Python can compute, and that gives an array of known size, is called by the graph::

    mask = spans((b, n), rate)                ->  mask = on_host((b, n), torch.bool, spans, (b, n), rate)

A number that only such a function can tell, as one that it draws, is a tensor without dimensions, then and now::

    scale = random.gauss(1.0, 0.1)            ->  scale = number_on_host(torch.float64, random.gauss, 1.0, 0.1)

Statements that store to tensors at places which only plain Python can tell are called as well, without gradients::

    for row, n in enumerate(sizes.tolist()):  ->  def fill(mask, sizes):
        mask[row, :n] = True                          for row, n in enumerate(sizes.tolist()):
                                                          mask[row, :n] = True

                                                  (mask,) = stores_on_host(fill, (mask,), sizes)

The CTC loss, of which no kernel of torch tells shapes, becomes a node as well::

    loss = F.ctc_loss(log_probs, y, n, m)     ->  loss = ctc_loss(log_probs, y, n, m)

In plain Python `select(test, f, g)` is `f() if test else g()`, `emit(f, *args)`, `later(f, *args)` and
`on_host(size, dtype, f, *args)` are `f(*args)`, `number_on_host(dtype, f, *args)` is a tensor of that number,
`stores_on_host(f, changed, *args)` calls `f(*changed, *args)` and gives `changed`, and `ctc_loss` is torch's. The
result of `emit` is always None.
"""

from .ctc import ctc_loss
from .host import number_on_host, on_host, stores_on_host
from .output import emit, emit_if, emit_when, later
from .selection import select

__all__ = ["ctc_loss", "emit", "emit_if", "emit_when", "later", "number_on_host", "on_host", "select", "stores_on_host"]
