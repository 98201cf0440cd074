"""A one-stage detection head."""
import torch
import torch.nn as nn


def box_area(boxes):
    return (boxes[:, 2] - boxes[:, 0]) * (boxes[:, 3] - boxes[:, 1])


class DetectionHead(nn.Module):
    def __init__(self, in_channels, num_classes, score_thresh=0.05, top_n=100):
        super().__init__()
        self.cls = nn.Conv2d(in_channels, num_classes, 1)
        self.reg = nn.Conv2d(in_channels, 4, 1)
        self.score_thresh = score_thresh
        self.top_n = top_n

    def forward(self, features):
        scores = self.cls(features).sigmoid().flatten(2).transpose(1, 2)
        boxes = self.reg(features).flatten(2).transpose(1, 2)
        results = []
        for s, b in zip(scores, boxes):
            best, labels = s.max(-1)
            keep = best > self.score_thresh
            best, labels, b = best[keep], labels[keep], b[keep]
            if len(best) > self.top_n:
                order = best.argsort(descending=True)[: self.top_n]
                best, labels, b = best[order], labels[order], b[order]
            valid = torch.nonzero(box_area(b) > 0).squeeze(1)
            results.append({"scores": best[valid], "labels": labels[valid], "boxes": b[valid]})
        return results
